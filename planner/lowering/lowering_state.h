#pragma once
// The state of one lowering, for planner/lowering/lower*.cpp alone: the graph as it grows, the
// stages of the plan, and the tasks of each device that later tasks wait for.

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
#include "profiles/setting.h"

namespace frazil {

// A task that ends with the gradients of a stage's layers from `lowest` up.
struct GradientPiece {
  LayerId lowest;
  TaskId task = kNoTask;
};

// The tasks and works of one stage on one of its devices.
struct StageTasks {
  std::array<std::array<WorkId, 2>, kActionKinds> work{};  // by kind and SizeIndex
  TaskId update = kNoTask;                                 // the last U
  // The last backward, if buckets of gradients leave it one by one, and its pieces, last layers
  // first.
  const Action* last_backward = nullptr;
  std::vector<GradientPiece> pieces;
};

struct LoweredDevice {
  std::array<LaneId, 5> lanes{kNoLane, kNoLane, kNoLane, kNoLane, kNoLane};  // by Lane
  bool sends_at_once = false;  // no link of the device has a bandwidth: a SEND is its hop alone
  TaskId overhead = kNoTask;
  TaskId first_compute = kNoTask;
  TaskId last_work = kNoTask;  // the last F, I, W, B, R or pair of its list
  bool has_barrier = false;
  bool has_reduction = false;
  TaskId last_collective = kNoTask;
  // Works by receiver and by transfer; so few that a linear search finds them.
  std::vector<std::pair<DeviceId, WorkId>> hops;
  std::vector<std::pair<Transfer, WorkId>> transfers;
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
  // The tasks by pipeline, stage and place among the stage's devices.
  std::vector<std::vector<std::vector<StageTasks>>> tasks;
  std::vector<LoweredDevice> devices;
  PartRows rows;
  std::vector<TaskId> weight_gradient;  // by slot(): the W or B
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
  // Returns the device of an action. Requires: an action of one micro-batch.
  DeviceId device_of(const Action& action) const {
    const Pipeline& of = plan.pipelines[action.pipeline.index()];
    const std::vector<DeviceId>& devices = of.stages[action.stage.index()].devices;
    if (devices.size() == 1) return devices.front();
    return frazil::device_of(of, action.stage, action.micro_batches->first, action.slice);
  }
  // Visits the parts of the stage `peer` that have samples in common with an action, cut to these
  // samples.
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
  // Makes `task` wait for `on`. A lane with an order implies the waits for its own earlier tasks.
  void wait(TaskId task, TaskId on, WorkId delay = kNoWork);

  Compute make_compute(DeviceId device, const Action& action, SizeIndex size) const;
  // The next functions return one work for all tasks that do the same, and add it at its first use.
  WorkId compute_work(DeviceId device, const Action& action, SizeIndex size);
  WorkId pair_work(DeviceId device, const Action& forward, SizeIndex first, const Action& backward,
                   SizeIndex second);
  WorkId transfer_work(const Transfer& transfer);
  WorkId hop_work(DeviceId from, DeviceId to);
};

LoweringState begin_lowering(const Plan& plan, Setting setting, const Activity& activity,
                             const LoweringOptions& options);
Action make_barrier_action();

// Adds what a task allocates and frees. The stash lives from the start of F to the end of the last
// part of its backward; in a stage that recomputes only the inputs live from F on, and the rest
// from the start of R. A receive buffer, which only layers without a backward have, lives as long
// as the F.
void change_memory(LoweringState& state, TaskId task, const Action& action);
// Adds the parameters, gradients and optimizer state that every device holds throughout.
void hold_states(LoweringState& state);

// Adds the collectives that the REDUCE_GRADs of the lists stand for.
void add_collectives(LoweringState& state);
Action name_reduction(const ReductionGroup& group, DeviceId device);
// Adds a collective that its devices enter together, one task per device, each named by its action.
// Returns the entry: a task without time that waits for the collective that each device enters
// before, and that all tasks of this collective wait for. The entry stands on the host lane of the
// first device, where nothing else can hold it up, because that device's collectives follow each
// other in list order.
TaskId add_collective(LoweringState& state, const Collective& collective,
                      const std::vector<Action>& actions);
// Holds `size` bytes of gradients while the device's last collective runs.
void hold_gradients(LoweringState& state, DeviceId device, Bytes size);
// Makes `entry` wait until the gradients of every device of the collective are complete.
void wait_for_backwards(LoweringState& state, const Collective& collective, TaskId entry);
// Adds the exchanges of tied parameters. Requires: all reduction groups have been added.
void add_tied_exchanges(LoweringState& state);
// Adds the barrier before updates, which takes as long as its round. Requires: the tasks made from
// lists are those before `listed`.
void add_barrier(LoweringState& state, TaskId listed, Duration round);

// True if a stage's gradients leave bucket by bucket (overlap in mode fast).
bool reduces_buckets(const LoweringState& state);
// True if they leave node by node of the gradient tree (overlap in mode exact).
bool ships_nodes(const LoweringState& state);

inline bool yields_weight_gradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

// Notes for each stage on a device the last backward, if buckets of gradients may leave before that
// backward ends. A pair is never cut.
void mark_last_backwards(LoweringState& state, DeviceId device, const std::vector<Action>& list);

struct BackwardPiece {
  LayerId lowest;
  Compute work;
};
// Cuts a stage's last backward wherever a bucket of its gradients is complete.
std::vector<BackwardPiece> cut_last_backward(const LoweringState& state, DeviceId device,
                                             const Action& action, SizeIndex size);
// Adds the shipments of gradient nodes and returns them by reduction. They are Transfer tasks on
// the collective lane of the sending device; each waits for the last micro-batch of its node.
std::vector<std::vector<TaskId>> ship_nodes(LoweringState& state);

}  // namespace frazil
