#include "traces/action.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::array<std::string_view, kActionKinds> kKindNames = {
    "F",      "I",      "W",           "B",       "R",       "U",           "SEND_F",  "RECV_F",
    "SEND_B", "RECV_B", "REDUCE_GRAD", "UNSHARD", "RESHARD", "OVERLAP_F_B", "BARRIER", "MOVE"};

// Each ..._rule returns the rule that is broken, or an empty text if all rules hold.

std::string_view micro_batch_rule(const Action& action) {
  const bool may = has_micro_batch(action.kind) || action.kind == ActionKind::kMove;
  if (has_micro_batch(action.kind) && !action.micro_batches) return "a micro-batch after the kind";
  if (!may && action.micro_batches) return "no micro-batch after this kind";
  if (action.slice && (!action.micro_batches || *action.slice < 0)) {
    return "a slice of a micro-batch, at least 0";
  }
  if (!action.micro_batches) return {};
  const auto [first, last] = *action.micro_batches;
  if (first.value < 0 || last < first) return "micro-batches from a first to a later last";
  // The number of micro-batches must fit its type.
  if (last.value - first.value == std::numeric_limits<std::int32_t>::max()) {
    return "fewer than 2147483648 micro-batches";
  }
  return {};
}

bool is_valid(const Place& place) {
  if (place.kind == Place::Kind::kDevice) return place.device.value >= 0;
  return place.device == DeviceId{};
}

std::string_view move_rule(const CellMove& move) {
  if (move.layers && (move.layers->first.value < 0 || move.layers->second < move.layers->first)) {
    return "layers from a first to a later last";
  }
  if (move.version && *move.version < 0) return "a version of at least 0";
  if (!is_valid(move.from) || !is_valid(move.to)) return "a device only on a device place";
  return {};
}

std::string_view pair_rule(const Action& action, const std::vector<Action>& halves) {
  const auto is_half = [](const Action& half, ActionKind kind) {
    return half.kind == kind && broken_rule(half).empty();
  };
  const bool fits =
      halves.size() == 2 && is_half(halves[0], ActionKind::kForward) &&
      (is_half(halves[1], ActionKind::kBackward) || is_half(halves[1], ActionKind::kBackwardInput));
  if (!fits) return "an F and then a B or I as the halves of a pair";
  if (action.pipeline != halves[0].pipeline) return "the pipeline of its F on a pair";
  return {};
}

Action make_action_of(PipelineId pipeline, StageId stage, ActionKind kind) {
  Action action;
  action.pipeline = pipeline;
  action.stage = stage;
  action.kind = kind;
  return action;
}

}  // namespace

bool operator==(const ActionPair& a, const ActionPair& b) { return a.halves == b.halves; }

Action make_action(PipelineId pipeline, StageId stage, ActionKind kind, MicroBatchId micro_batch) {
  ENSURE(has_micro_batch(kind), "make_action is for kinds with a micro-batch");
  Action action = make_action_of(pipeline, stage, kind);
  action.micro_batches = MicroBatches{micro_batch, micro_batch};
  return action;
}

Action make_stage_action(PipelineId pipeline, StageId stage, ActionKind kind) {
  Action action = make_action_of(pipeline, stage, kind);
  ENSURE(broken_rule(action).empty(), "make_stage_action is for kinds of a whole stage");
  return action;
}

Action make_pair_action(const Action& forward, const Action& backward) {
  Action action = make_action_of(forward.pipeline, StageId{}, ActionKind::kPair);
  action.detail = ActionPair{{forward, backward}};
  const std::string_view rule = broken_rule(action);
  ENSURE(rule.empty(), fmt::format("a pair needs {}", rule));
  set_step(action, forward.step);
  return action;
}

void set_step(Action& action, Step step) {
  action.step = step;
  if (auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (Action& half : pair->halves) half.step = step;
  }
}

std::string_view broken_rule(const Action& action) {
  if (action.pipeline.value < 0 || action.stage.value < 0) return "numbers of at least 0";
  if (action.peer && (!takes_peer(action.kind) || action.peer->value < 0)) {
    return "a peer only after SEND and RECV";
  }
  if (action.peer_slice && (!action.peer || *action.peer_slice < 0)) {
    return "a slice of a named peer, at least 0";
  }
  if (const auto rule = micro_batch_rule(action); !rule.empty()) return rule;
  const auto* pair = std::get_if<ActionPair>(&action.detail);
  const auto* move = std::get_if<CellMove>(&action.detail);
  const bool is_pair = action.kind == ActionKind::kPair;
  if (is_pair != (pair != nullptr) || (action.kind == ActionKind::kMove) != (move != nullptr)) {
    return "halves on a pair only and a cell on a MOVE only";
  }
  if ((is_pair || action.kind == ActionKind::kBarrier) && action.stage != StageId{}) {
    return "no stage on a pair or BARRIER";
  }
  if (pair != nullptr) return pair_rule(action, pair->halves);
  if (move != nullptr) return move_rule(*move);
  return {};
}

std::string_view kind_name(ActionKind kind) {
  return kKindNames.at(static_cast<std::size_t>(kind));
}

bool has_micro_batch(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kBackward:
    case ActionKind::kRecompute:
    case ActionKind::kSendForward:
    case ActionKind::kReceiveForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveBackward:
      return true;
    case ActionKind::kUpdate:
    case ActionKind::kReduceGradients:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kPair:
    case ActionKind::kBarrier:
    case ActionKind::kMove:
      return false;
  }
  return false;
}

bool is_compute(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kBackward:
    case ActionKind::kRecompute:
    case ActionKind::kUpdate:
    case ActionKind::kPair:
      return true;
    case ActionKind::kSendForward:
    case ActionKind::kReceiveForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveBackward:
    case ActionKind::kReduceGradients:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kBarrier:
    case ActionKind::kMove:
      return false;
  }
  return false;
}

bool takes_peer(ActionKind kind) {
  return kind == ActionKind::kSendForward || kind == ActionKind::kReceiveForward ||
         kind == ActionKind::kSendBackward || kind == ActionKind::kReceiveBackward;
}

}  // namespace frazil
