#pragma once
// What a cache of the frozen prefix spared, by micro-batches.

#include <cstdint>

namespace frazil {

// Micro-batches, or slices of them, that features were asked for.
struct PrefixCounts {
  std::int64_t asked = 0;
  std::int64_t whole = 0;  // of them, all rows were there at the depth in force: no layer ran
  std::int64_t parts = 0;  // the rows that were missing ran alone
  friend bool operator==(const PrefixCounts&, const PrefixCounts&) = default;
};

}  // namespace frazil
