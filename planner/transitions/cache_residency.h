#pragma once
// For how long a frozen prefix stays, as far as that is known: the masks of a run whose policy and
// decorators read the step alone are the same in every run; of others nothing is foreseen.

#include <optional>
#include <vector>

#include "planner/freezing/freeze_authority.h"
#include "profiles/model_profile.h"

namespace frazil {

// Each from its step on. None where masks follow from what a run measures, or from more steps than
// are worth asking about.
std::optional<std::vector<TracedMask>> foresee_masks(const FreezeConfig& config,
                                                     const RunShape& run);

// Steps of [step, run.steps) in which features of layers [0, depth) serve: until they thaw, or
// until an epoch after the prefix has grown, when deeper ones can have taken their place. That is
// the least: where the deeper ones do not, they serve on. Without a forecast, to the end.
Step count_resident_steps(const std::optional<std::vector<TracedMask>>& forecast,
                          const RunShape& run, const ModelProfile& profile, Step step, int depth);

}  // namespace frazil
