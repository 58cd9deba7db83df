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
namespace frazil {

// Arms that do not fit are not there, nor those whose masks are not known.
using PredictedRuns = std::map<Arm, PredictedRun>;

struct RecordedMasks {
  std::vector<ForecastSegment> segments;
  Step steps = 1;  // of the run
  TransitionOverhead overhead = {};
  std::string file;  // that they were read from
  std::int64_t seed = 1;
};

// Returns the masks of a run: neighbours differ. `file`: of the result.
RecordedMasks record_masks(const PairResult& result, const std::string& file);

// Predicts these arms. Every step counts as a whole one, also the last of an epoch if its batch is
// short. `shorter_steps`: those of arm `shorter`, which has no prediction without. Throws
// InputError for masks of another number of blocks than the profile has.
PredictedRuns predict_pairs(const BaseRun& base, Setting setting, const RecordedMasks& masks,
                            const std::vector<Arm>& arms, std::optional<Step> shorter_steps);

}  // namespace frazil
