#include "planner/actions/message.h"

namespace frazil {
namespace {

bool is_backward(const Action& message) {
  return message.kind == ActionKind::kSendBackward || message.kind == ActionKind::kReceiveBackward;
}

template <class Which>
MessageDevices find_devices(const Schedule& completed, Which which) {
  MessageDevices devices;
  for (std::size_t device = 0; device < completed.devices.size(); ++device) {
    for (const Action& action : completed.devices[device]) {
      if (which(action)) devices.emplace(message_of(action), device);
    }
  }
  return devices;
}

Action make_side(const Message& message, bool is_sender) {
  const StageId own = is_sender ? message.from : message.to;
  const StageId peer = is_sender ? message.to : message.from;
  ActionKind kind = is_sender ? ActionKind::kSendForward : ActionKind::kReceiveForward;
  if (message.backward) {
    kind = is_sender ? ActionKind::kSendBackward : ActionKind::kReceiveBackward;
  }
  Action action = make_action(message.pipeline, own, kind, message.micro_batch);
  action.slice = is_sender ? message.from_slice : message.to_slice;
  action.peer_slice = is_sender ? message.to_slice : message.from_slice;
  const int neighbour = is_sender != message.backward ? 1 : -1;
  if (peer.value != own.value + neighbour || action.peer_slice) action.peer = peer;
  return action;
}

}  // namespace

bool is_send(const Action& action) {
  return action.kind == ActionKind::kSendForward || action.kind == ActionKind::kSendBackward;
}

bool is_receive(const Action& action) {
  return action.kind == ActionKind::kReceiveForward || action.kind == ActionKind::kReceiveBackward;
}

Message message_of(const Action& action) {
  const bool downstream = is_send(action) != is_backward(action);
  const StageId neighbour{action.stage.value + (downstream ? 1 : -1)};
  const StageId peer = action.peer.value_or(neighbour);
  return {.pipeline = action.pipeline,
          .from = is_send(action) ? action.stage : peer,
          .to = is_send(action) ? peer : action.stage,
          .backward = is_backward(action),
          .micro_batch = action.micro_batches->first,
          .from_slice = is_send(action) ? action.slice : action.peer_slice,
          .to_slice = is_send(action) ? action.peer_slice : action.slice};
}

Action send_of(const Message& message) { return make_side(message, true); }

Action receive_of(const Message& message) { return make_side(message, false); }

MessageDevices find_receiving_devices(const Schedule& completed) {
  return find_devices(completed, is_receive);
}

MessageDevices find_sending_devices(const Schedule& completed) {
  return find_devices(completed, is_send);
}

}  // namespace frazil
