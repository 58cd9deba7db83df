#pragma once
// Reads and writes time lines as CSV, exact both ways. The first line is "# frazil.timeline 1
// devices=<n>", for spans that several processes have measured with " clock_uncertainty_ns=<n>"
// behind it: how sure their times are beside each other. The second line is the header
//   device,lane,step,action,start_ns,end_ns
// Spans follow in the order of sort_spans: spans of a device that start and end together keep
// theirs. Integers have no leading zeros, nothing is quoted (no field holds a comma or a quote),
// and every line ends in \n.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "traces/timeline.h"

namespace frazil {

// Writes a time line; sorts a copy if its spans are unsorted. A span outside the time line (unknown
// device, end before start, negative step, halves of a pair with another step) or more than 2^20
// devices are bugs: std::logic_error.
std::string to_csv(const Timeline& timeline,
                   const std::optional<Duration>& clock_uncertainty = std::nullopt);
// Reads a time line. Throws InputError with the line: wrong header, wrong number of columns, end
// before start, wrong order, compute spans of one device that overlap, more than 2^20 devices,
// times outside [-2^62, 2^62) ns, ...
Timeline parse_timeline_csv(std::string_view text, const std::string& file);
Timeline read_timeline_csv(const std::filesystem::path& path);
// Return the clock uncertainty that a time line tells. Throw InputError for a wrong first line.
std::optional<Duration> parse_clock_uncertainty(std::string_view text, const std::string& file);
std::optional<Duration> read_clock_uncertainty(const std::filesystem::path& path);

}  // namespace frazil
