#pragma once
// Predicts the arms of an ablation beside what their runs take, with the cache of the run
// configuration. The masks are those of a course (mask_course.h) under one seed: foreseen, so that
// nothing of the runs is known, or those that a run has recorded, with the overhead of transitions
// that it measured. Where the policy reads signals, or masks are drawn, other seeds have other
// masks.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/predict/mask_course.h"
#include "analysis/ablation/predict/predict_run.h"
#include "profiles/setting.h"

namespace frazil {

// Arms that do not fit are not there, nor those whose masks are not known.
using PredictedRuns = std::map<Arm, PredictedRun>;

// Predicts these arms. Every step counts as a whole one, also the last of an epoch if its batch is
// short. `shorter_steps`: those of arm `shorter`, which has no prediction without. Throws
// InputError for masks of another number of blocks than the profile has.
PredictedRuns predict_pairs(const BaseRun& base, Setting setting, const MaskCourse& course,
                            const std::vector<Arm>& arms, std::optional<Step> shorter_steps);

// Returns the predictions of this basis in a line, with speeds over `unfrozen`: "unfrozen 12.00 s,
// all 8.00 s (1.50x)".
std::string tell_predicted(const PredictedRuns& predicted, PredictionBasis basis);

}  // namespace frazil
