#pragma once
// Counts what a cache of the frozen prefix spared.

#include <cstdint>

namespace frazil {

// Counts micro-batches, or slices of micro-batches, that features were asked for.
struct PrefixCounts {
  std::int64_t asked = 0;
  std::int64_t whole = 0;  // all rows were there at the depth in force: no layer ran
  std::int64_t parts = 0;  // only the missing rows ran
  friend bool operator==(const PrefixCounts&, const PrefixCounts&) = default;
};

}  // namespace frazil
