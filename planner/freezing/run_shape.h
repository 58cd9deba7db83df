#pragma once
// The shape of the run for which masks are decided: what a policy knows of it beside its signals.
//
// At the end of a model there may be blocks in which nothing trains, such as the last loss of a
// distillation: freezing one saves nothing, and where it was taken for the head, all that trains
// would be frozen before the run is over. So policies count the blocks before them, the last of
// which is the head (planner/freezing/freeze_policy.h), and leave them active.

#include <algorithm>
#include <cstdint>

#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

struct RunShape {
  int blocks = 1;     // of the model and of every mask
  int untrained = 0;  // of these the last ones, where nothing trains; at least one block is left
  Step steps = 1;
  Step steps_per_epoch = 1;
  std::uint64_t seed = 0;

  // Returns the blocks that policies count: from the embedding to the head.
  int counted() const { return blocks - untrained; }
  // Returns L, those between embedding and head.
  int layers() const { return std::max(counted() - 2, 0); }
};

// Returns the last block in which something trains; block 0 if there is none. A parameter that
// several layers use is one of each of them.
BlockId find_head(const ModelProfile& profile);

// Returns the shape of a run of the model.
RunShape shape_run(const ModelProfile& profile, Step steps, Step steps_per_epoch,
                   std::uint64_t seed);

}  // namespace frazil
