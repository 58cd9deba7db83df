#pragma once
// PipeTransformer's freeze trace under plans of this project's own search
// (planner/search/search.h): the same model, masks, cache and machine park.

#include <string>
#include <vector>

#include "planner/reproduce/elastic_run.h"

namespace frazil {

struct PlannedEpoch {
  Epoch theirs;
  int stages = 1;  // of ours
  int pipelines = 1;
  int micro_batch_size = 1;
  bool cached = false;  // whether ours reads features, where theirs could
  Duration step{0};     // of ours, of the same batch

  double rate() const;
};

struct PlannedRun {
  std::string title;
  std::vector<PlannedEpoch> epochs;
  double speed_up = 1;  // of ours over theirs, over the whole run
};

// With the batch of the start kept, and with the one that grows.
std::vector<PlannedRun> plan_runs(const Training& training, const std::vector<int>& frozen);

std::string print_runs(const std::vector<PlannedRun>& runs);
// [{"title", "speed_up", "epochs": [{"epoch", "frozen_layers", "batch", "pipetransformer":
// {"stages", "pipelines", "cached", "step_ns"}, "frazil": {the same and "micro_batch_size"}}]}]
std::string runs_json(const std::vector<PlannedRun>& runs);

}  // namespace frazil
