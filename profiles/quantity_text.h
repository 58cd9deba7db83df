#pragma once
// "0.313ms", "2GiB", "12.5GB/s" <-> values: how people write quantities on a command line.
// A number without a unit is refused; one space may stand before the unit. Decimal and binary
// prefixes are told apart (GB, GiB).

#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// Units ns us ms s min h. Exact: "0.313ms" is 313000 ns; what is no whole number of ns is refused.
// `flag` is named in the InputError. Negative, NaN, infinite and overflowing values are refused.
Duration parse_duration(std::string_view text, const std::string& flag);
std::vector<Duration> parse_durations(std::string_view comma_list, const std::string& flag);

// Units B kB MB GB TB KiB MiB GiB TiB.
Bytes parse_bytes(std::string_view text, const std::string& flag);

// Units B/s ... TB/s and KiB/s ... TiB/s. Zero is refused: it would mean unlimited.
BytesPerSecond parse_bandwidth(std::string_view text, const std::string& flag);

// For people: "38.008 ms", "1.50 GiB". Three decimals at most; exact text belongs in files.
std::string to_text(Duration duration);
std::string to_text(Bytes bytes);

}  // namespace frazil
