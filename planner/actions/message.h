#pragma once
// A message between two stages, as its SEND and its RECV both name it.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "planner/actions/schedule.h"

namespace frazil {

bool is_send(const Action& action);     // SEND_F, SEND_B
bool is_receive(const Action& action);  // RECV_F, RECV_B

struct Message {
  PipelineId pipeline;
  StageId from;
  StageId to;
  bool backward = false;
  MicroBatchId micro_batch;
  std::optional<std::int32_t> from_slice;  // where the stage shares micro-batches by samples
  std::optional<std::int32_t> to_slice;
  friend auto operator<=>(const Message&, const Message&) = default;
};

// Returns the message that an action belongs to. Requires: a SEND or a RECV.
Message message_of(const Action& action);
// Return the SEND and the RECV of a message. They name the peer if it is no neighbour or has
// slices.
Action send_of(const Message& message);
Action receive_of(const Message& message);

using MessageDevices = std::map<Message, std::size_t>;
// Finds the device on whose list the RECV of each message stands.
MessageDevices find_receiving_devices(const Schedule& completed);
// Finds the device on whose list the SEND of each message stands.
MessageDevices find_sending_devices(const Schedule& completed);

}  // namespace frazil
