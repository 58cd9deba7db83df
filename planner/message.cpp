#include "planner/message.h"

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
          .slice = action.slice};
}

MessageDevices find_receiving_devices(const Schedule& completed) {
  return find_devices(completed, is_receive);
}

MessageDevices find_sending_devices(const Schedule& completed) {
  return find_devices(completed, is_send);
}

}  // namespace frazil
