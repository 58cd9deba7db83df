#pragma once
// Draws random actions of every kind, for round trips.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>

#include "traces/action.h"

namespace frazil {

class RandomActions {
 public:
  explicit RandomActions(std::uint64_t seed) : random_(seed) {}

  // Draws uniformly from the closed range.
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum) {
    return std::uniform_int_distribution<std::int64_t>(minimum, maximum)(random_);
  }
  bool coin() { return integer(0, 1) == 1; }
  // Draws a number that is mostly small, sometimes of any size.
  std::int32_t number() {
    const std::int64_t largest = std::numeric_limits<std::int32_t>::max() - 1;
    return static_cast<std::int32_t>(integer(0, 9) == 0 ? integer(0, largest) : integer(0, 12));
  }

  Action action() { return action_of(static_cast<ActionKind>(integer(0, kActionKinds - 1))); }

  Action action_of(ActionKind kind) {
    if (kind == ActionKind::kPair) return pair();
    Action action;
    if (coin()) action.pipeline = PipelineId{number()};
    if (kind != ActionKind::kBarrier) action.stage = StageId{number()};
    action.kind = kind;
    if (has_micro_batch(kind) || (kind == ActionKind::kMove && coin())) add_micro(action);
    if (takes_peer(kind) && coin()) action.peer = StageId{number()};
    if (action.peer && coin()) action.peer_slice = number();
    if (kind == ActionKind::kMove) action.detail = move();
    return action;
  }

 private:
  Action pair() {
    Action forward = action_of(ActionKind::kForward);
    Action backward = action_of(coin() ? ActionKind::kBackward : ActionKind::kBackwardInput);
    if (coin()) backward.pipeline = forward.pipeline;
    return make_pair_action(forward, backward);
  }

  void add_micro(Action& action) {
    const MicroBatchId first{number()};
    const MicroBatchId other{coin() ? first.value : number()};
    action.micro_batches = MicroBatches{std::min(first, other), std::max(first, other)};
    if (coin()) action.slice = number();
  }

  Place place() {
    const auto kind = static_cast<Place::Kind>(integer(0, 2));
    return {kind, DeviceId{kind == Place::Kind::kDevice ? number() : 0}};
  }

  CellMove move() {
    CellMove move;
    move.cell = static_cast<CellKind>(integer(0, 7));
    if (coin()) {
      const LayerId first{number()};
      const LayerId other{coin() ? first.value : number()};
      move.layers = {std::min(first, other), std::max(first, other)};
    }
    if (coin()) move.version = number();
    move.from = place();
    move.to = place();
    return move;
  }

  std::mt19937_64 random_;
};

}  // namespace frazil
