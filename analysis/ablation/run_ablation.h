#pragma once
// Runs the pairs of an ablation, each as a process of its own, and keeps their results. A pair that
// has a result is not run again.

#include <functional>
#include <string>

#include "analysis/ablation/ablation_request.h"

namespace frazil {

// Tells a person what happens: one line.
using TellAblation = std::function<void(const std::string& line)>;

// Finds the first plan of each arm and runs what has no result yet. Before anything runs, all
// results that are there are read. Throws InputError while another process runs an ablation in the
// folder, for results of other inputs, for runs of another length than `samples` gives them, and
// with the child's exit code and sentence for a run that fails; what has finished then stays.
AblationRuns run_ablation(const AblationRequest& request, const TellAblation& tell);

}  // namespace frazil
