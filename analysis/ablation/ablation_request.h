#pragma once
// What an ablation is asked for, and what is there of it when its pairs have run.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/arm_run.h"
#include "analysis/ablation/pair_result.h"
#include "analysis/ablation/predict/compute_limit.h"
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
  // Samples of an epoch, where that is told; else a run has to end before anything is predicted.
  std::optional<std::int64_t> samples = std::nullopt;
};

// What is there when the pairs have run, or when a signal has ended them.
struct AblationRuns {
  std::vector<PairResult> results;    // in the order of seeds, then of arms in their table
  PredictedRuns predicted;            // by the configuration, or once masks have been recorded
  std::optional<ComputeLimit> limit;  // where the masks are known of which it speaks
  std::string other_masks = {};       // a run whose masks were not those foreseen: "all, seed 1"
  std::map<Arm, std::string> unfit;   // arms of which no plan fits, or one they need, with why
  std::size_t pairs = 0;              // that there are to be
  std::size_t begun = 0;              // by this call
  int stopped_by = 0;                 // signal that ended it; 0: none
};

}  // namespace frazil
