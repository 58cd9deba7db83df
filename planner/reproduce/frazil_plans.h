#pragma once
// Runs PipeTransformer's freeze trace under plans of this project's own search
// (planner/search/search.h), with the same model, masks, cache and machine park.

#include <string>
#include <vector>

#include "planner/reproduce/elastic_run.h"

namespace frazil {

struct PlannedEpoch {
  Epoch theirs;  // PipeTransformer's; the members below describe the plan of our search
  int stages = 1;
  int pipelines = 1;
  int micro_batch_size = 1;
  bool cached = false;  // reads features from the cache; only where PipeTransformer's plan does
  Duration step{0};     // for the batch of PipeTransformer's plan

  double rate() const;
};

struct PlannedRun {
  std::string title;
  std::vector<PlannedEpoch> epochs;
  double speed_up = 1;  // time of PipeTransformer's plans / time of ours, over the whole run
};

// Plans the run twice: with the batch of the start kept, and with the batch that grows.
std::vector<PlannedRun> plan_runs(const Training& training, const std::vector<int>& frozen);

std::string print_runs(const std::vector<PlannedRun>& runs);
// Returns [{"title", "speed_up", "epochs": [{"epoch", "frozen_layers", "batch", "pipetransformer":
// {"stages", "pipelines", "cached", "step_ns"}, "frazil": {these keys and "micro_batch_size"}}]}].
std::string runs_json(const std::vector<PlannedRun>& runs);

}  // namespace frazil
