#pragma once
// Reads and writes time lines as CSV, exact both ways. The first line is "# frazil.timeline 1
// devices=<n>", the second the header
//   device,lane,step,action,start_ns,end_ns
// Spans follow in the order of sort_spans: spans of a device that start and end together keep
// theirs. Integers have no leading zeros, nothing is quoted (no field holds a comma or a quote),
// and every line ends in \n.

#include <filesystem>
#include <string>
#include <string_view>

#include "traces/timeline.h"

namespace frazil {

// Writes a time line; sorts a copy if its spans are unsorted. A span outside the time line (unknown
// device, end before start, negative step, halves of a pair with another step) or more than 2^20
// devices are bugs: std::logic_error.
std::string to_csv(const Timeline& timeline);
// Reads a time line. Throws InputError with the line: wrong header, wrong number of columns, end
// before start, wrong order, compute spans of one device that overlap, more than 2^20 devices,
// times outside [-2^62, 2^62) ns, ...
Timeline parse_timeline_csv(std::string_view text, const std::string& file);
Timeline read_timeline_csv(const std::filesystem::path& path);

}  // namespace frazil
