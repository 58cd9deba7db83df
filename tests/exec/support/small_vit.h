#pragma once
// A small vision transformer, its data and plans, for the tests of the executor.

#include <vector>

#include "exec/models/vit.h"
#include "exec/run/run.h"

namespace frazil {

// The model has eight layers: embedding, three blocks of two, head.
VitConfig small_config();
inline constexpr int kSmallLayers = 8;
inline constexpr int kSmallBlocks = 5;
inline constexpr int kSmallMicroBatch = 3;

// Makes the micro-batches of a step; a `short_by` > 0 takes that many samples from the last one.
std::vector<Samples> small_micro_batches(Step step, int micro_batches, int short_by = 0);

struct PlanShape {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int micro_batches = 6;
  // The cuts by pipeline, and how many micro-batches each pipeline owns, in order.
  std::vector<std::vector<int>> cuts = {{}};
  std::vector<int> owned = {6};
  std::string mask = "11111";
};
// Pipelines take devices one after another.
Plan make_small_plan(const ModelProfile& structure, const PlanShape& shape);
int devices_of(const PlanShape& shape);

}  // namespace frazil
