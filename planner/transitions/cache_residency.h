#pragma once
// Foresees for how long a frozen prefix stays, as far as that can be known: the masks of a run
// whose policy and decorators read the step alone are the same in every run; the masks of any other
// run are not foreseen.

#include <optional>
#include <vector>

#include "planner/freezing/freeze_authority.h"
#include "profiles/model_profile.h"

namespace frazil {

// Returns the masks of the run, each from its step on. None if masks follow from what a run
// measures or predicts, or if the run has more steps than are worth asking about (1,000,000).
std::optional<std::vector<TracedMask>> foresee_masks(const FreezeConfig& config,
                                                     const RunShape& run);

// Returns for how many steps of [step, run.steps) the features of layers [0, depth) serve: until
// one of these layers thaws, or until an epoch after the prefix has grown, when deeper features can
// have taken their place. That is a lower bound, for features that are not replaced serve on.
// Without a forecast they serve to the end.
Step count_resident_steps(const std::optional<std::vector<TracedMask>>& forecast,
                          const RunShape& run, const ModelProfile& profile, Step step, int depth);

}  // namespace frazil
