#pragma once
// Names samples of a data set by their place, so that every process of a run can make them itself.

#include <cstdint>

namespace frazil {

// Samples [first, first + count) of the order of an epoch.
struct SampleRange {
  int epoch = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

// What a run evaluates or looks at between steps.
enum class SamplePart : std::uint8_t { kTest, kValidation, kProbe };

}  // namespace frazil
