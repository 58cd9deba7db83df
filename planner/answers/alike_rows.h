#pragma once
// Folds a table with a row for each device: on large clusters most rows say the same.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace frazil {

// A row that stands for all devices with these cells.
struct AlikeRow {
  std::string name;        // "device0", "device0 to device31 (32)", "device0, device2, ... (32)"
  std::size_t device = 0;  // the first of them
};

// Returns the rows in the order of their first devices. `cells[d]` is what stands behind the name
// of device d. Up to 16 devices have a row each.
std::vector<AlikeRow> fold_alike_rows(std::span<const std::string> names,
                                      std::span<const std::string> cells);

// Returns the line below a table of which some row stands for several devices; else "".
std::string tell_folded(std::span<const AlikeRow> rows, std::size_t devices);

}  // namespace frazil
