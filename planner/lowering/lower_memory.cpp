// Implements the part of planner/lowering/lowering_state.h on memory: what tasks change, and what
// is held throughout.
#include "planner/lowering/lowering_state.h"

namespace frazil {

namespace {

// Returns the bytes of the receive buffers that the F of a micro-batch needs besides its stash.
Bytes find_received(const LoweringState& state, const Action& action) {
  const PipelineTable& pipeline = state.table[action.pipeline.index()];
  const DeviceId here = state.device_of(action);
  Bytes received;
  for (const std::size_t b : state.stage_of(action).incoming) {
    const StageBoundary& boundary = pipeline.boundaries[b];
    if (boundary.buffer_per_sample.count == 0) continue;
    state.visit_peers(action, boundary.from, [&](const StagePart& part) {
      if (part.device != here) received += boundary.buffer_per_sample * part.samples.count();
    });
  }
  return received;
}

}  // namespace

void change_memory(LoweringState& state, TaskId task, const Action& action) {
  using When = MemoryChange::When;
  const MicroBatchId m = action.micro_batches->first;
  const DeviceId device = state.device_of(action);
  const auto change = [&](When when, MemoryKind memory, Bytes size, int sign) {
    if (size.count == 0) return;
    state.step.graph.change_memory({task, when, device, memory, sign * size.count});
  };
  const ActionKind kind = action.kind;
  const StageEntry& stage = state.stage_of(action);
  const auto slice = static_cast<std::size_t>(action.slice.value_or(0));
  const StageFootprint& footprint = stage.footprints[slice][state.size_of(m)];
  const bool recomputes = stage.stage->memory == MemoryPolicy::kRecompute;
  const Bytes input = footprint.input_per_micro_batch;
  const Bytes stash = footprint.stash_per_micro_batch;
  const bool ends = kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight ||
                    (kind == ActionKind::kBackwardInput && !stage.has_update) ||
                    (kind == ActionKind::kForward && !stage.has_backward);
  if (kind == ActionKind::kForward) {
    change(When::kStart, MemoryKind::kStash, recomputes ? input : stash, 1);
    const Bytes received = find_received(state, action);
    change(When::kStart, MemoryKind::kReceive, received, 1);
    change(When::kEnd, MemoryKind::kReceive, received, -1);
  }
  if (kind == ActionKind::kRecompute) change(When::kStart, MemoryKind::kStash, stash - input, 1);
  // The I frees the part of the stash that W does not read.
  const Bytes until_input = stage.has_update ? footprint.stash_of_frozen : Bytes{};
  if (kind == ActionKind::kBackwardInput) {
    change(When::kEnd, MemoryKind::kStash, until_input, -1);
  }
  if (ends) {
    const bool after_input = kind == ActionKind::kBackwardWeight;
    change(When::kEnd, MemoryKind::kStash, after_input ? stash - until_input : stash, -1);
  }
}

void hold_states(LoweringState& state) {
  for (std::size_t d = 0; d < state.devices.size(); ++d) {
    const DeviceId device{d};
    const StageFootprint held =
        find_held_state(state.table, device, state.plan, state.profile, state.activity);
    state.step.graph.hold(device, MemoryKind::kParameters, held.parameters);
    state.step.graph.hold(device, MemoryKind::kGradients, held.gradients);
    state.step.graph.hold(device, MemoryKind::kOptimizer, held.optimizer);
  }
}

}  // namespace frazil
