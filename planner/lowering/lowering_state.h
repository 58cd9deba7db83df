#pragma once
// The state of one lowering, for planner/lower*.cpp alone: the graph as it grows, the stages of the
// plan, and what is known of each device.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/lowering/lower.h"
#include "planner/lowering/stage_work.h"
#include "planner/plan/reduction_groups.h"
#include "planner/plan/stage_slices.h"
#include "planner/plan/tied_exchanges.h"

namespace frazil {

// A task that ends with the gradients of a stage's layers from `lowest` up.
struct GradientPiece {
  LayerId lowest;
  TaskId task = kNoTask;
};

// The tasks and works of one stage on one of its devices.
struct StageTasks {
  std::array<std::array<WorkId, 2>, kActionKinds> work{};  // by kind and SizeIndex
  TaskId update = kNoTask;                                 // the last
  const Action* last_backward = nullptr;  // that buckets of gradients leave one by one
  std::vector<GradientPiece> pieces;      // of it, last layers first
};

struct LoweredDevice {
  std::array<LaneId, 5> lanes{kNoLane, kNoLane, kNoLane, kNoLane, kNoLane};  // by Lane
  bool sends_at_once = false;  // none of its links has a bandwidth: a SEND is its hop alone
  TaskId overhead = kNoTask;
  TaskId first_compute = kNoTask;
  TaskId last_work = kNoTask;  // the last F, I, W, B, R or pair of its list
  bool has_barrier = false;
  bool has_reduction = false;
  TaskId last_collective = kNoTask;
  std::vector<std::pair<DeviceId, WorkId>> hops;       // by receiver; few, so found by looking
  std::vector<std::pair<Transfer, WorkId>> transfers;  // likewise
};

struct LoweringState {
  const Plan& plan;
  const ModelProfile& profile;
  const Activity& activity;
  LoweringOptions options;
  std::size_t micro_batches;
  int short_size;  // samples of the last micro-batch
  std::vector<PipelineTable> table;
  std::vector<ReductionGroup> reductions;  // in the order in which they are entered
  LoweredStep step;
  // By pipeline, stage and place among the stage's devices.
  std::vector<std::vector<std::vector<StageTasks>>> tasks;
  std::vector<LoweredDevice> devices;
  PartRows rows;
  std::vector<TaskId> weight_gradient;  // by slot: its W or B
  using PairKey = std::tuple<DeviceId, PipelineId, StageId, SizeIndex, PipelineId, StageId,
                             ActionKind, SizeIndex>;
  std::map<PairKey, WorkId> pair_works;
  WorkId no_work = kNoWork;  // a work without time

  const StageEntry& stage_of(const Action& action) const {
    return table.at(action.pipeline.index()).stages.at(action.stage.index());
  }
  // Requires: the device is of the stage.
  StageTasks& tasks_of(PipelineId pipeline, StageId stage, DeviceId device) {
    return tasks[pipeline.index()][stage.index()].at(place_of(pipeline, stage, device));
  }
  StageTasks& tasks_of(const Action& action, DeviceId device) {
    return tasks_of(action.pipeline, action.stage, device);
  }
  std::size_t place_of(PipelineId pipeline, StageId stage, DeviceId device) const {
    const auto& devices = plan.pipelines[pipeline.index()].stages[stage.index()].devices;
    return static_cast<std::size_t>(std::find(devices.begin(), devices.end(), device) -
                                    devices.begin());
  }
  // Requires an action of one micro-batch.
  DeviceId device_of(const Action& action) const {
    const Pipeline& of = plan.pipelines[action.pipeline.index()];
    const std::vector<DeviceId>& devices = of.stages[action.stage.index()].devices;
    if (devices.size() == 1) return devices.front();
    return frazil::device_of(of, action.stage, action.micro_batches->first, action.slice);
  }
  // Visits the parts of another stage that have samples in common with an action, cut to these.
  template <class Visit>
  void visit_peers(const Action& action, StageId peer, Visit visit) const {
    const Pipeline& of = plan.pipelines[action.pipeline.index()];
    const MicroBatchId m = action.micro_batches->first;
    const int all = samples(size_of(m));
    const SampleInterval own = samples_of(of.stages[action.stage.index()], action.slice, all);
    visit_parts(of, peer, m, all, own, visit);
  }
  std::size_t slot(std::size_t row, MicroBatchId micro_batch) const {
    return row * micro_batches + micro_batch.index();
  }
  std::size_t row_of(const LayerHolder& owner) const {
    const auto& stages = plan.pipelines[owner.pipeline.index()].stages;
    return rows.of(owner.pipeline, owner.stage,
                   slice_on(stages[owner.stage.index()], owner.device));
  }
  std::size_t slot(const Action& action) const {
    return slot(rows.of(action.pipeline, action.stage, action.slice), action.micro_batches->first);
  }
  SizeIndex size_of(MicroBatchId micro_batch) const {
    return micro_batch.index() + 1 == micro_batches ? kShort : kWhole;
  }
  int samples(SizeIndex size) const { return size == kShort ? short_size : plan.micro_batch_size; }

  LaneId lane(DeviceId device, Lane kind);
  TaskId add_task(DeviceId device, Lane kind, WorkId work, const Action& action);
  // Waits for an earlier task of the same lane are implied by the lane, where it has an order.
  void wait(TaskId task, TaskId on, WorkId delay = kNoWork);

  Compute make_compute(DeviceId device, const Action& action, SizeIndex size) const;
  // Works are shared by all tasks that do the same.
  WorkId compute_work(DeviceId device, const Action& action, SizeIndex size);
  WorkId pair_work(DeviceId device, const Action& forward, SizeIndex first, const Action& backward,
                   SizeIndex second);
  WorkId transfer_work(const Transfer& transfer);
  WorkId hop_work(DeviceId from, DeviceId to);
};

LoweringState begin_lowering(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
                             const Activity& activity, const LoweringOptions& options);
Action make_barrier_action();

// The stash lives from the start of F (of R, but for the inputs, where the stage recomputes) to the
// end of the last part of its backward; a receive buffer, which only layers without a backward
// have, as long as the F.
void change_memory(LoweringState& state, TaskId task, const Action& action);
// Parameters, gradients and optimizer state, on every device.
void hold_states(LoweringState& state);

// The collectives that the REDUCE_GRADs of the lists stand for, and the barrier before updates.
// `listed`: the tasks made from lists are those before it.
void add_collectives(LoweringState& state);
Action name_reduction(const ReductionGroup& group, DeviceId device);
// The devices enter together: one task without time, the result, waits for what each of them enters
// before, and their collectives, each named by its action, wait for it. It stands on the host lane
// of the first device, where nothing else can hold it up: that device's collectives follow each
// other in the same order.
TaskId add_collective(LoweringState& state, const Collective& collective,
                      const std::vector<Action>& actions);
// While the device's last collective runs.
void hold_gradients(LoweringState& state, DeviceId device, Bytes size);
// Every device's gradients are complete.
void wait_for_backwards(LoweringState& state, const Collective& collective, TaskId entry);
// After all groups: what devices exchange of tied parameters.
void add_tied_exchanges(LoweringState& state);
void add_barrier(LoweringState& state, TaskId listed);

// Whether a stage's gradients leave bucket by bucket, and node by node.
bool reduces_buckets(const LoweringState& state);
bool ships_nodes(const LoweringState& state);

inline bool yields_weight_gradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

// Notes of each stage on a device the last backward that a bucket of gradients may leave before its
// end. A pair is never cut.
void mark_last_backwards(LoweringState& state, DeviceId device, const std::vector<Action>& list);

struct BackwardPiece {
  LayerId lowest;
  Compute work;
};
// A stage's last backward, cut where a bucket of its gradients is complete.
std::vector<BackwardPiece> cut_last_backward(const LoweringState& state, DeviceId device,
                                             const Action& action, SizeIndex size);
// The shipments of gradient nodes, by reduction: Transfer tasks on the collective lane of the
// device they come from, each once its node's last micro-batch is through.
std::vector<std::vector<TaskId>> ship_nodes(LoweringState& state);

}  // namespace frazil
