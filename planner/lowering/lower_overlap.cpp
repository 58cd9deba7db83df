// Implements the part of planner/lowering/lowering_state.h on reductions that begin while backwards
// still run.
#include "planner/lowering/lowering_state.h"

#include <algorithm>

#include "profiles/error.h"
#include "sim/collective_cost.h"

namespace frazil {
namespace {

// Finds where a stage's gradients are cut: the lowest layer of each bucket of the stage, last
// layers first.
std::vector<LayerId> find_cuts(const LoweringState& state, DeviceId device, const Action& action) {
  const auto is_own = [&](const LayerHolder& owner) {
    return owner.pipeline == action.pipeline && owner.stage == action.stage &&
           owner.device == device;
  };
  std::vector<LayerId> cuts;
  for (const ReductionGroup& bucket : state.reductions) {
    const auto& owners = bucket.owners;
    if (std::none_of(owners.begin(), owners.end(), is_own)) continue;
    cuts.push_back(bucket.layers.front());
  }
  return cuts;
}

struct Shipment {
  TaskId ready = kNoTask;  // tasks of one list: the order in which nodes are complete
  std::size_t reduction = 0;
  DeviceId from;
};

// Finds the task after which a gradient node of a device is complete.
TaskId find_ready(const LoweringState& state, const ReductionGroup& group, DeviceId device,
                  const TreeNode& node) {
  TaskId ready = kNoTask;
  for (const LayerHolder& owner : group.owners) {
    if (owner.device != device) continue;
    for (const MicroBatches& owned : owner.micro_batches) {
      const int first = std::max(owned.first.value, node.first);
      const int end = std::min(owned.last.value + 1, node.end);
      for (int m = first; m < end; ++m) {
        const TaskId task = state.weight_gradient[state.slot(state.row_of(owner), MicroBatchId{m})];
        ENSURE(task != kNoTask, "a reduced gradient that no action computes");
        ready = ready == kNoTask ? task : std::max(ready, task);
      }
    }
  }
  ENSURE(ready != kNoTask, "a gradient node without micro-batches");
  return ready;
}

std::vector<Shipment> list_shipments(const LoweringState& state) {
  std::vector<Shipment> shipments;
  for (std::size_t r = 0; r < state.reductions.size(); ++r) {
    const ReductionGroup& group = state.reductions[r];
    for (std::size_t d = 0; d < group.nodes.size(); ++d) {
      const DeviceId device = group.collective.devices[d];
      for (const TreeNode& node : group.nodes[d]) {
        shipments.push_back({find_ready(state, group, device, node), r, device});
      }
    }
  }
  std::stable_sort(shipments.begin(), shipments.end(),
                   [](const Shipment& a, const Shipment& b) { return a.ready < b.ready; });
  return shipments;
}

}  // namespace

bool reduces_buckets(const LoweringState& state) {
  return state.options.overlap && state.plan.reduction == ReductionMode::kFast;
}

bool ships_nodes(const LoweringState& state) {
  return state.options.overlap && state.plan.reduction == ReductionMode::kExact;
}

void mark_last_backwards(LoweringState& state, DeviceId device, const std::vector<Action>& list) {
  for (const Action& action : list) {
    if (yields_weight_gradient(action.kind)) {
      state.tasks_of(action, device).last_backward = &action;
    }
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) {
        state.tasks_of(half, device).last_backward = nullptr;
      }
    }
  }
}

std::vector<BackwardPiece> cut_last_backward(const LoweringState& state, DeviceId device,
                                             const Action& action, SizeIndex size) {
  const Compute whole = state.make_compute(device, action, size);
  std::vector<BackwardPiece> pieces;
  auto part = whole.parts.begin();
  const auto add_piece = [&](LayerId lowest) {
    BackwardPiece piece{lowest, {whole.device, whole.micro_batch_size, {}, !pieces.empty()}};
    for (; part != whole.parts.end() && part->layer >= lowest; ++part) {
      piece.work.parts.push_back(*part);
    }
    pieces.push_back(std::move(piece));
  };
  for (const LayerId cut : find_cuts(state, device, action)) add_piece(cut);
  if (part != whole.parts.end() || pieces.empty()) add_piece(LayerId{0});
  return pieces;
}

std::vector<std::vector<TaskId>> ship_nodes(LoweringState& state) {
  std::vector<std::vector<TaskId>> shipped(state.reductions.size());
  for (const Shipment& shipment : list_shipments(state)) {
    const ReductionGroup& group = state.reductions[shipment.reduction];
    const std::vector<DeviceId>& owners = group.collective.devices;
    const Bytes share = share_among(group.collective.size, owners.size());
    for (const DeviceId to : owners) {
      if (to == shipment.from) continue;
      const TaskId task = state.add_task(shipment.from, Lane::kCollective,
                                         state.transfer_work({shipment.from, to, share}),
                                         name_reduction(group, shipment.from));
      state.wait(task, shipment.ready);
      state.step.graph.change_memory(
          {task, MemoryChange::When::kEnd, to, MemoryKind::kGradients, share.count});
      shipped[shipment.reduction].push_back(task);
    }
  }
  return shipped;
}

}  // namespace frazil
