#pragma once
// Runs the pairs of an ablation, each as a process of its own, and keeps their results. A pair that
// has a result is not run again.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/arm_run.h"
#include "analysis/ablation/pair_result.h"
#include "analysis/ablation/predict/predict_pairs.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct AblationRequest {
  BaseRun base;
  std::filesystem::path profile_file;
  std::filesystem::path cluster_file;
  ModelProfile profile;
  Cluster cluster;  // its devices dealt to the processes of `inputs`
  AblationInputs inputs;
  std::filesystem::path out;
  std::vector<Arm> arms;  // with those that they need
  std::vector<std::int64_t> seeds;
};

// What is there when the pairs have run, or when a signal has ended them.
struct AblationRuns {
  std::vector<PairResult> results;   // in the order of seeds, then of arms in their table
  PredictedRuns predicted;           // of arms that have run, once masks have been recorded
  std::map<Arm, std::string> unfit;  // arms of which no plan fits, or one they need, with why
  std::size_t pairs = 0;             // that there are to be
  std::size_t begun = 0;             // by this call
  int stopped_by = 0;                // signal that ended it; 0: none
};

// Tells a person what happens: one line.
using TellAblation = std::function<void(const std::string& line)>;

// Finds the first plan of each arm and runs what has no result yet. Before anything runs, all
// results that are there are read. Throws InputError while another process runs an ablation in the
// folder, for results of other inputs, and with the child's exit code and sentence for a run that
// fails; what has finished then stays.
AblationRuns run_ablation(const AblationRequest& request, const TellAblation& tell);

}  // namespace frazil
