#pragma once
// Results of runs that nobody made, as an ablation would have found them.

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/ablation/run_ablation.h"

namespace frazil {

class PlantedRuns {
 public:
  void add(Arm arm, std::int64_t seed, double accuracy, double wall_seconds) {
    PairResult result;
    result.pair = {arm, seed};
    result.inputs.run_hash = "of the run";
    result.accuracy = accuracy;
    result.test_samples = 100;
    result.wall = Duration{std::llround(wall_seconds * 1e9)};
    result.device = result.wall * 2;
    result.cluster = result.wall * 2;
    result.process = result.wall + std::chrono::seconds(1);
    result.steps = 6;
    result.epochs = 2;
    result.state_hash = "00ff";
    result.phases = {{.mask = "111",
                      .plan = "1 stage x 2 pipelines",
                      .pipelines = 2,
                      .devices = 2,
                      .steps = 6,
                      .wall = result.wall}};
    result.curve = {{1, result.wall / 2, result.wall, accuracy / 2},
                    {2, result.wall, result.device, accuracy}};
    runs_.results.push_back(result);
    if (std::find(request_.arms.begin(), request_.arms.end(), arm) == request_.arms.end()) {
      request_.arms.push_back(arm);
    }
    if (std::find(request_.seeds.begin(), request_.seeds.end(), seed) == request_.seeds.end()) {
      request_.seeds.push_back(seed);
    }
  }
  void disturb_last(double cores) { runs_.results.back().foreign_cores = cores; }
  void make_last_by(const std::string& version) { runs_.results.back().frazil_version = version; }
  void freeze_last_and_cache(std::int64_t samples) {
    runs_.results.back().phases.back().mask = "011";
    runs_.results.back().cached = samples;
  }
  void end_with(const std::string& hash) { runs_.results.back().state_hash = hash; }
  const AblationRequest& request() const { return request_; }
  const AblationRuns& runs() const { return runs_; }

 private:
  AblationRequest request_;
  AblationRuns runs_;
};

}  // namespace frazil
