#pragma once
// Says which steps of a phase the time lines are of: a run keeps those of some of its steps.

#include <optional>
#include <string>

#include "traces/timeline.h"

namespace frazil {

struct SampledSteps {
  std::int64_t count = 0;
  Step first = 0;
  Step last = 0;
  std::int64_t windows = 0;  // which these steps are; as many as steps where each is measured alone
  Step every = 0;            // the least distance from one window to the next; 0 for a single one
  friend bool operator==(const SampledSteps&, const SampledSteps&) = default;
};

// Returns none if there are no spans. `window`: how many steps are measured at once, those of a
// plan with steps ahead.
std::optional<SampledSteps> find_sampled(const Timeline& measured, Step window = 1);

// Returns "28 sampled steps, one in 32 from step 3 to step 867", or "96 sampled steps, in 3 windows
// from step 50 to step 181".
std::string describe(const SampledSteps& sampled);

}  // namespace frazil
