#pragma once
// Predicts the arms of an ablation beside what their runs took: under the masks that a run has
// recorded, with the cache of its configuration and the overhead of transitions that it measured.
// The masks are those of the first seed under which an arm that follows the policy has ended. Where
// the policy reads signals, or masks are drawn, other seeds have other masks.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/arm_run.h"
#include "analysis/ablation/pair_result.h"
#include "analysis/ablation/predict/predict_run.h"
#include "profiles/setting.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Arms that do not fit are not there, nor those whose masks are not known.
using PredictedRuns = std::map<Arm, PredictedRun>;

struct RecordedMasks {
  FreezeTrace trace;
  std::string file;  // that it was read from
  std::int64_t seed = 1;
};

// Returns the cost of a transition besides moving state, as the run predicted it from its own
// measurement: the largest of its transitions. Zero where there was none.
TransitionOverhead find_overhead(const FreezeTrace& trace);

// Predicts these arms. Every step counts as a whole one, also the last of an epoch if its batch is
// short. `shorter_epochs`: those of arm `shorter`, which has no prediction without. Throws
// InputError for a trace that is not of the profile's blocks.
PredictedRuns predict_pairs(const BaseRun& base, Setting setting, const RecordedMasks& masks,
                            const std::vector<Arm>& arms, std::optional<int> shorter_epochs);

}  // namespace frazil
