#include "tests/exec/support/allocation_bound.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/communication/in_process_communicator.h"
#include "exec/measuring/allocation_meter.h"
#include "exec/reduction/clip.h"
#include "planner/actions/message.h"
#include "planner/lowering/stage_work.h"
#include "planner/plan/reduction_groups.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "sim/collective_cost.h"
#include "tests/exec/support/layer_room.h"

namespace frazil {
namespace {

// Measures clipping of all layers on one device, which has no less to square than any device of the
// plan.
std::int64_t measure_clipping(const BoundedPlan& bounded, const Activity& activity,
                              const DeviceState& state) {
  Plan alone = bounded.plan;
  const MicroBatchId last{bounded.plan.micro_batches() - 1};
  const int layers = static_cast<int>(bounded.model.layers.size());
  alone.pipelines = {make_pipeline(layers, {}, {DeviceId{0}}, {MicroBatchId{0}, last})};
  alone.schedule = NamedSchedule{};
  const StepProgram program = make_program(alone, bounded.profile, 1, /*clip=*/true);
  std::map<LayerId, Tensors> sums;
  for (const auto& [layer, own] : state) {
    if (!activity.layers[layer.index()].weight_gradient) continue;
    for (const at::Tensor& each : own.parameters)
      sums[layer].push_back(at::ones_like(each.detach()));
  }
  const auto communicators = make_in_process_communicators(1);
  const AllocationMeter meter;
  find_clip_scale(sums, program, DeviceId{0}, *communicators[0], 0, bounded.optimizer.clip_norm);
  return meter.peak_bytes();
}

// The place of an action in the lists.
struct Place {
  std::size_t device = 0;
  std::size_t index = 0;
};

// Clocks say, by device and index of an action, how many actions of each device have ended for sure
// when this one begins, or when it ends where it is a RECV.
using Clocks = std::vector<std::vector<std::vector<std::size_t>>>;

Clocks find_clocks(const Schedule& schedule) {
  const std::size_t devices = schedule.devices.size();
  Clocks clocks(devices);
  std::map<Message, Place> sends;
  std::vector<std::vector<std::size_t>> now(devices, std::vector<std::size_t>(devices));
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t d = 0; d < devices; ++d) {
      for (std::size_t i = clocks[d].size(); i < schedule.devices[d].size(); ++i) {
        const Action& action = schedule.devices[d][i];
        now[d][d] = i;
        if (is_receive(action)) {
          const auto sent = sends.find(message_of(action));
          if (sent == sends.end()) break;
          const auto& theirs = clocks[sent->second.device][sent->second.index];
          for (std::size_t o = 0; o < devices; ++o) now[d][o] = std::max(now[d][o], theirs[o]);
        }
        if (is_send(action)) sends[message_of(action)] = {d, i};
        clocks[d].push_back(now[d]);
        moves = true;
      }
    }
  }
  return clocks;
}

// Bytes that an action of one device leaves for a stage, until they are let go of.
struct Left {
  std::size_t from = 0;  // index of the action that makes it
  Place until;           // the action that ends it
  std::int64_t bytes = 0;
};

// Work on one micro-batch of a stage.
using Part = std::tuple<PipelineId, StageId, MicroBatchId>;

SimulatedStep simulate_step_of(const BoundedPlan& bounded) {
  const Cluster cluster = make_uniform_cluster(bounded.devices, Bytes{1LL << 40}, {});
  return simulate_step(bounded.plan, {bounded.profile, cluster},
                       {.clip = bounded.optimizer.clip_norm > 0});
}

class AllocationBound {
 public:
  explicit AllocationBound(const BoundedPlan& bounded)
      : bounded_(bounded),
        program_(make_program(bounded.plan, bounded.profile, bounded.devices,
                              bounded.optimizer.clip_norm > 0)),
        step_(simulate_step_of(bounded)),
        clocks_(find_clocks(program_.schedule)),
        left_(static_cast<std::size_t>(bounded.devices)) {
    measure_rooms();
    find_left();
  }

  std::int64_t of(DeviceId device) const {
    const std::vector<Action>& list = program_.schedule.devices[device.index()];
    const std::int64_t constant = count_constant(device);
    const std::int64_t reduced = count_reduced(device);
    const std::vector<TaskId> tasks = list_tasks(device);
    auto task = tasks.begin();
    std::int64_t held = 0;
    std::int64_t after_reduction = 0;
    std::int64_t halves = 0;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Action& action = list[i];
      if (action.kind == ActionKind::kReduceGradients) after_reduction = reduced;
      if (is_compute(action.kind)) held += change(*task, device, MemoryChange::When::kStart);
      halves += count_halves(action, ActionKind::kBackwardInput);
      most = std::max(most, constant + held + halves + after_reduction + room_of(action) +
                                count_left(device.index(), i));
      halves -= count_halves(action, ActionKind::kBackwardWeight);
      if (is_compute(action.kind)) held += change(*task++, device, MemoryChange::When::kEnd);
    }
    ENSURE(held == 0 && halves == 0 && task == tasks.end(), "a step gives back what it takes");
    return std::max(most, constant);
  }

 private:
  template <class Visit>
  static void visit_halves(const Action& action, Visit visit) {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) visit(half);
    } else {
      visit(action);
    }
  }

  void measure_rooms() {
    const AllocationMeter::Book silence;  // the allocator warns of frees of what was there before
    DeviceState state = make_start_state(bounded_.model, program_.activity);
    const MeasuredLayers layers{bounded_.model, bounded_.optimizer, program_.activity,
                                bounded_.micro_batch};
    std::map<std::tuple<LayerId, bool, bool>, Room> known;
    for (std::size_t p = 0; p < program_.plan.pipelines.size(); ++p) {
      const std::vector<Stage>& stages = program_.plan.pipelines[p].stages;
      for (std::size_t s = 0; s < stages.size(); ++s) {
        const bool splits = program_.splits_backward(PipelineId{p}, StageId{s});
        const bool recomputes = stages[s].memory == MemoryPolicy::kRecompute;
        Room& stage = rooms_[{PipelineId{p}, StageId{s}}];
        for (const LayerRange& range : stages[s].layers) {
          for (LayerId l = range.first; l <= range.last; ++l.value) {
            const auto [room, is_new] = known.try_emplace({l, splits, recomputes});
            if (is_new) {
              room->second = measure_room(layers, state, l, splits, recomputes);
            }
            add_layer(room->second, stage);
          }
        }
      }
    }
    if (bounded_.optimizer.clip_norm > 0) {
      clipping_ = measure_clipping(bounded_, program_.activity, state);
    }
  }

  // A message is let go of by the last action on its micro-batch in the stage that reads it; on the
  // same device an activation is the reader's stash from its F on.
  void find_left() {
    std::map<std::pair<Part, ActionKind>, Place> made;
    std::map<Part, Place> last;
    for (std::size_t d = 0; d < left_.size(); ++d) {
      const std::vector<Action>& list = program_.schedule.devices[d];
      for (std::size_t i = 0; i < list.size(); ++i) {
        visit_halves(list[i], [&](const Action& action) {
          if (!is_compute(action.kind) || !has_micro_batch(action.kind)) return;
          const Part part{action.pipeline, action.stage, action.micro_batches->first};
          const bool whole = action.kind == ActionKind::kBackward;
          made[{part, whole ? ActionKind::kBackwardInput : action.kind}] = {d, i};
          last[part] = {d, i};
        });
      }
    }
    const auto table = make_stage_table(program_.plan, bounded_.profile, program_.activity);
    const auto leave = [&](const Place& from, const Place& until, Bytes per_sample) {
      const std::int64_t bytes = per_sample.count * program_.plan.micro_batch_size;
      left_[from.device].push_back({from.index, until, bytes});
    };
    for (const auto& [part, ends] : last) {
      const auto& [p, stage, m] = part;
      for (const StageBoundary& boundary : table[p.index()].boundaries) {
        if (boundary.from != stage) continue;
        const Part reader{p, boundary.to, m};
        const Place& from = made.at({part, ActionKind::kForward});
        const Place& read = made.at({reader, ActionKind::kForward});
        leave(from, read.device == from.device ? read : last.at(reader),
              boundary.activation_per_sample);
        if (!boundary.carries) continue;
        leave(made.at({reader, ActionKind::kBackwardInput}), ends, boundary.gradient_per_sample);
      }
    }
  }

  // Counts what is left while an action of a device runs.
  std::int64_t count_left(std::size_t device, std::size_t index) const {
    std::int64_t bytes = 0;
    for (const Left& left : left_[device]) {
      const bool is_made = left.from <= index;
      const bool is_gone = left.until.index < clocks_[device][index][left.until.device];
      if (is_made && !is_gone) bytes += left.bytes;
    }
    return bytes;
  }

  // Counts parameters, gradients and moments, and with weight versions the parameters as the step
  // began.
  std::int64_t count_constant(DeviceId device) const {
    std::int64_t bytes = 0;
    for (const TaskGraph::Held& held : step_.lowered.graph.held()) {
      if (held.device == device) bytes += held.size.count;
    }
    if (program_.plan.versions == WeightVersions::kSync) return bytes;
    for (std::size_t l = 0; l < program_.topology.owners.size(); ++l) {
      const bool is_here = program_.topology.owners[l].front().device == device;
      if (is_here && program_.activity.layers[l].weight_gradient) {
        bytes += bounded_.profile.layers[l].parameters.count;
      }
    }
    return bytes;
  }

  // Counts a complete sum, and a partial one of the device's share for each node of any owner.
  std::int64_t count_reduced(DeviceId device) const {
    std::int64_t bytes = 0;
    for (const ReductionGroup& group :
         find_reduction_groups(program_.plan, bounded_.profile, program_.activity)) {
      const Collective& collective = group.collective;
      const auto& all = collective.devices;
      if (std::find(all.begin(), all.end(), device) == all.end()) continue;
      bytes += collective.size.count;
      for (const int nodes : collective.owned) {
        bytes += nodes * (share_among(collective.size, all.size()).count + 4);  // in whole floats
      }
    }
    return bytes;
  }

  std::vector<TaskId> list_tasks(DeviceId device) const {
    std::vector<TaskId> tasks;
    const TaskGraph& graph = step_.lowered.graph;
    for (TaskId task = 0; task < graph.size(); ++task) {
      const TaskLane& lane = graph.lanes()[graph.lane_of()[task]];
      if (lane.device == device && lane.lane == Lane::kCompute) tasks.push_back(task);
    }
    return tasks;
  }

  std::int64_t change(TaskId task, DeviceId device, MemoryChange::When when) const {
    std::int64_t bytes = 0;
    for (const MemoryChange& each : step_.lowered.graph.memory_changes()) {
      if (each.task == task && each.device == device && each.when == when) bytes += each.delta;
    }
    return bytes;
  }

  // Counts what the layers of the stage hold between I and W, if the action is of this kind.
  std::int64_t count_halves(const Action& action, ActionKind kind) const {
    std::int64_t bytes = 0;
    visit_halves(action, [&](const Action& half) {
      if (half.kind != kind) return;
      bytes += rooms_.at({half.pipeline, half.stage}).half;
    });
    return bytes;
  }

  std::int64_t room_of(const Action& action) const {
    if (action.kind == ActionKind::kBarrier) return clipping_;
    std::int64_t most = 0;
    visit_halves(action, [&](const Action& half) {
      if (!is_compute(half.kind)) return;
      const Room& stage = rooms_.at({half.pipeline, half.stage});
      const auto found = stage.of.find(half.kind);
      if (found != stage.of.end()) most = std::max(most, found->second);
    });
    return most;
  }

  const BoundedPlan& bounded_;
  StepProgram program_;
  SimulatedStep step_;
  Clocks clocks_;
  std::vector<std::vector<Left>> left_;  // by device
  std::map<std::pair<PipelineId, StageId>, Room> rooms_;
  std::int64_t clipping_ = 0;
};

}  // namespace

std::vector<std::int64_t> bound_allocations(const BoundedPlan& bounded) {
  const AllocationBound bound(bounded);
  std::vector<std::int64_t> bounds;
  for (int d = 0; d < bounded.devices; ++d) bounds.push_back(bound.of(DeviceId{d}));
  return bounds;
}

}  // namespace frazil
