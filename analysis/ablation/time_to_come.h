#pragma once
// Estimates how long the runs of an ablation that are still to come will take: by what runs of the
// same arm took as whole programs, else by what is predicted, else by the mean of all that ran.

#include <string>
#include <vector>

#include "analysis/ablation/pair_result.h"
#include "analysis/ablation/predict/predict_pairs.h"

namespace frazil {

struct TimeToCome {
  Duration time{0};
  int unknown = 0;    // runs of which nothing is known; `time` is without them
  int predicted = 0;  // runs that stand in `time` by their prediction, without evaluation and start
};
TimeToCome estimate_time(const std::vector<ArmSeed>& pending,
                         const std::vector<PairResult>& finished, const PredictedRuns& predicted);
// Returns "about 3 min 20 s", with what that leaves out.
std::string tell_time(const TimeToCome& time);

}  // namespace frazil
