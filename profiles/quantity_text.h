#pragma once
// Parses and prints quantities as people write them on a command line: "0.313ms", "2GiB",
// "12.5GB/s". A number without a unit is refused; one space may stand before the unit. Decimal and
// binary prefixes are told apart (GB, GiB).

#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// Parses a duration; units are ns us ms s min h. The result is exact: "0.313ms" is 313000 ns.
// Throws InputError, which names `flag`, for what is no whole number of ns and for negative, NaN,
// infinite and overflowing values.
Duration parse_duration(std::string_view text, const std::string& flag);
std::vector<Duration> parse_durations(std::string_view comma_list, const std::string& flag);

// Parses a size, exactly too; units are B kB MB GB TB KiB MiB GiB TiB.
Bytes parse_bytes(std::string_view text, const std::string& flag);

// Parses a bandwidth; units are B/s ... TB/s and KiB/s ... TiB/s. Zero is refused: it would mean
// unlimited.
BytesPerSecond parse_bandwidth(std::string_view text, const std::string& flag);

// Formats a quantity for people, with three decimals of a time and two of a size at most:
// "38.008 ms", "1.50 GiB". Exact text belongs in files.
std::string to_text(Duration duration);
std::string to_text(Bytes bytes);

}  // namespace frazil
