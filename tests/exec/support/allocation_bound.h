#pragma once
// The most that a device's allocator may hand out in a step of a plan, whatever the devices' speed:
// what the simulator holds as an action begins, and beside it, all found without running the plan,
//   - the working room of one layer at a time, measured alone on one device: what its forward, its
//     backward or its update takes at most above what stays;
//   - what the device has sent, until a message that it has received since shows that the reader
//     is done: a message counts where it was made, in the simulator where it is read;
//   - what a layer holds between I and W above its stash, the gradients at its seams, measured
//     alone;
//   - after a reduction its results and the partial sums of the device's share, and for clipping
//     the squares in double, measured alone;
//   - with weight versions the parameters as the step began: what was there before is not taken off
//     when it is let go of.

#include <cstdint>
#include <vector>

#include "exec/run/run.h"
#include "tests/exec/support/measured_memories.h"

namespace frazil {

struct BoundedPlan {
  const ModelSpec& model;  // a chain
  const OptimizerConfig& optimizer;
  const ModelProfile& profile;  // with measured stashes
  const Samples& micro_batch;   // one of those of the step
  const Plan& plan;
  int devices = 1;
};

// Returns the bounds by device.
std::vector<std::int64_t> bound_allocations(const BoundedPlan& bounded);

}  // namespace frazil
