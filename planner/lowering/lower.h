#pragma once
// Lowering: (plan, completed schedule) -> task graph. The twin of the executor's switch: the only
// place that says what each action costs and waits for. Dependencies come from the layer DAG.
//   F   compute, forward of its layers but those cached; waits for the F of each stage it
//       reads from, over the boundary (the micro-batch has the same device in both: no delay; else
//       SEND task on the sender's send lane, then a hop); of a stage with slices for those that
//       have its samples
//   B   compute, for each layer of the stage that needs it: I and W, W alone, or nothing; waits for
//       its own F and for the B of each stage that reads from it over a carrying edge
//   SEND  transfer on the sender's send lane; RECV takes no time of its own and no task
//   REDUCE_GRAD  per group of layers with the same owners (planner/plan/reduction_groups.h) a
//   collective
//       on the collective lane of every owner, entered together after the last backward of each;
//       after all groups, per pipeline and parameter tied across devices, a gather of its sums
//   U   compute, updates of the active layers; waits for its REDUCE_GRAD, and with a BARRIER for
//       all backwards and reductions of all devices; the squares that clipping exchanges there, 8
//       bytes per parameter tensor, have no price
// Each device's compute actions run in list order. Memory as in planner/lowering/footprint.h, while
// a REDUCE_GRAD runs as in planner/lowering/reduction_memory.h. A device's first compute action
// waits for its step_overhead, a task of its host lane. A last micro-batch that is short costs and
// stashes its own size, and so does a slice. Where no link of the sender has a bandwidth, a SEND
// takes no time, has no task, and only its hop remains.

#include <optional>
#include <vector>

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"
#include "sim/task_graph.h"
#include "traces/action.h"

namespace frazil {

// Reductions that begin while backwards still run, instead of after the last.
//   fast    the last backward of a stage is cut where a bucket of gradients is complete, last
//           layers first (one inside a pair is not cut); each bucket has its ring, entered by all
//           owners once they have it
//   exact   every gradient node is shipped, in shares, as soon as its last micro-batch is through;
//           when all have arrived, a gather ends the reduction. Shares that wait count as gradients
struct ReductionOverlap {
  Bytes bucket{
      25 << 20};  // full when it holds so many; PyTorch's DistributedDataParallel's default
};

struct LoweringOptions {
  std::optional<ReductionOverlap> overlap = std::nullopt;
  // Lists give no order: everything that an action needs is a dependency, also on its own device.
  // For choosing an order. Weight versions are kSync then.
  bool any_order = false;
};

struct LoweredStep {
  TaskGraph graph;
  std::vector<Action> actions;  // by TaskId
};

// Throws InfeasibleError naming an action kind that is not interpreted.
LoweredStep lower(const Plan& plan, const Schedule& completed, const ModelProfile& profile,
                  const Cluster& cluster, const Activity& activity,
                  const LoweringOptions& options = {});

}  // namespace frazil
