#pragma once
// Predicts the runs of an ablation as far as its configuration and the runs that have ended allow:
// before any run where --samples says how long an epoch is and the masks follow from the step
// alone; else once a run has told how long runs are, or under which masks it has trained.

#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/ablation_request.h"

namespace frazil {

// Returns the course that the predictions rest on: the one that is foreseen under the first seed;
// else that of the first run that followed the policy, by seed and arm; else the length of the runs
// alone. None while that is not known.
std::optional<MaskCourse> find_course(const AblationRequest& request,
                                      const std::vector<PairResult>& results);

// Returns the predictions with those that the course adds or makes anew. What is predicted by the
// configuration stays as it is.
PredictedRuns predict_runs(const AblationRequest& request, const AblationRuns& runs,
                           const MaskCourse& course);

// Returns the limit by compute under the masks of the course; none where it has none, or where no
// arm follows the policy.
std::optional<ComputeLimit> find_limit(const AblationRequest& request, const AblationRuns& runs,
                                       const MaskCourse& course);

// Names a run that followed the policy and had other masks than are foreseen under its seed;
// nothing if there is none, or if none are foreseen.
std::string find_other_masks(const AblationRequest& request,
                             const std::vector<PairResult>& results);

// Throws InputError for a run of another length than --samples gives it.
void refuse_other_length(const AblationRequest& request, const PairResult& result);

}  // namespace frazil
