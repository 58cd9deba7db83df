// What tasks do to memory, and what is held throughout.

#include "planner/lowering.h"

namespace frazil {

void change_memory(LoweringState& state, TaskId task, const StageEntry& stage, ActionKind kind,
                   const StageFootprint& footprint) {
  using When = MemoryChange::When;
  const auto change = [&](When when, MemoryKind memory, Bytes size, int sign) {
    if (size.count == 0) return;
    state.step.graph.change_memory({task, when, stage.device, memory, sign * size.count});
  };
  const bool recomputes = stage.stage->memory == MemoryPolicy::kRecompute;
  const Bytes input = footprint.input_per_micro_batch;
  const Bytes stash = footprint.stash_per_micro_batch;
  const bool ends = kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight ||
                    (kind == ActionKind::kBackwardInput && !stage.has_update) ||
                    (kind == ActionKind::kForward && !stage.has_backward);
  if (kind == ActionKind::kForward) {
    change(When::kStart, MemoryKind::kStash, recomputes ? input : stash, 1);
    change(When::kStart, MemoryKind::kReceive, footprint.receive_per_micro_batch, 1);
  }
  if (kind == ActionKind::kRecompute) change(When::kStart, MemoryKind::kStash, stash - input, 1);
  if (ends) {
    change(When::kEnd, MemoryKind::kStash, stash, -1);
    change(When::kEnd, MemoryKind::kReceive, footprint.receive_per_micro_batch, -1);
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
