#pragma once
// Time lines as CSV, exact both ways. Header line
//   device,lane,step,action,start_ns,end_ns
// after a first line "# frazil.timeline 1 devices=<n>"; spans in the order of sort_spans, integers
// without leading zeros, no quotes (no field holds a comma or a quote), every line ended by \n.

#include <filesystem>
#include <string>
#include <string_view>

#include "traces/timeline.h"

namespace frazil {

// Sorts a copy where the spans are unsorted. A span outside the time line (unknown device, end
// before start, negative step, halves of a pair with another step) is a bug: std::logic_error.
// So are more than 2^20 devices.
std::string to_csv(const Timeline& timeline);
// Throws InputError with the line: wrong header, wrong number of columns, end before start, wrong
// order, compute spans of one device that overlap, more than 2^20 devices, times outside
// [-2^62, 2^62) ns, ...
Timeline parse_timeline_csv(std::string_view text, const std::string& file);
Timeline read_timeline_csv(const std::filesystem::path& path);
void write_timeline_csv(const Timeline& timeline, const std::filesystem::path& path);

}  // namespace frazil
