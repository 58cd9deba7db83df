#pragma once
// Lowers a plan and its completed schedule to a task graph. Lowering is the counterpart of the
// executor's switch over actions and the only place that says what each action costs and waits for.
// Dependencies come from the layer DAG.
// clang-format off
//   F            compute, the forward of its layers but the cached ones; waits for the F of each
//                stage that it reads from: without delay if the micro-batch has one device in both
//                stages, else for a SEND task on the sender's send lane, then a hop (latency). If
//                that stage has slices, F waits for the slices that have its samples
//   B            compute, for each layer of the stage what it needs: I and W, W alone, or nothing;
//                waits for its own F and for the B of each stage that reads from it over an edge
//                that carries a gradient
//   SEND         transfer on the sender's send lane
//   RECV         no time of its own and no task
//   REDUCE_GRAD  per group of layers with one set of owners (planner/plan/reduction_groups.h) a
//                collective on the collective lane of every owner, entered together after the last
//                backward of each; after all groups, per pipeline and parameter tied across
//                devices, a gather of its sums
//   U            compute, updates of the active layers; waits for its REDUCE_GRAD, and with a
//                BARRIER for all backwards and reductions of all devices and for the commit round
//                (planner/plan/commit_round.h), if the step has one; the squares that clipping
//                exchanges there, 8 bytes per parameter tensor, have no price
// clang-format on
// Each device's compute actions run in list order. Memory is that of planner/lowering/footprint.h,
// and while a REDUCE_GRAD runs that of planner/lowering/reduction_memory.h. A device's first
// compute action waits for the device's step_overhead, a task of its host lane. A short last
// micro-batch costs and stashes its own size, and so does a slice. If no link of the sender has a
// bandwidth, a SEND takes no time and has no task; only its hop remains.

#include <optional>
#include <vector>

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"
#include "sim/task_graph.h"
#include "traces/action.h"

namespace frazil {

// Makes reductions begin while backwards still run, instead of after the last backward.
//   fast    the last backward of a stage is cut where a bucket of gradients is complete, last
//           layers first (a backward inside a pair is not cut); each bucket has its ring, entered
//           by all owners once they have the bucket
//   exact   every gradient node is shipped, in shares, as soon as its last micro-batch is through;
//           when all nodes have arrived, a gather ends the reduction. Waiting shares count as
//           gradients
struct ReductionOverlap {
  // The size of a full bucket; the default is that of PyTorch's DistributedDataParallel.
  Bytes bucket{25 << 20};
};

struct LoweringOptions {
  std::optional<ReductionOverlap> overlap = std::nullopt;
  // Lists then give no order, and everything that an action needs is a dependency, on its own
  // device too; used to choose an order. Requires: the plan's weight versions are kSync.
  bool any_order = false;
};

struct LoweredStep {
  TaskGraph graph;
  std::vector<Action> actions;  // by TaskId
};

// Lowers a step. Throws InfeasibleError naming an action kind that is not interpreted.
LoweredStep lower(const Plan& plan, const Schedule& completed, Setting setting,
                  const Activity& activity, const LoweringOptions& options = {});

}  // namespace frazil
