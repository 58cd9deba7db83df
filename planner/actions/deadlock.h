#pragma once
// Finds deadlocks among the messages of a completed schedule, for each way in which programs hand
// messages to a transport. Messages have no tags: the k-th SEND from one device to another meets
// the k-th RECV there, so these must be the same message.
//   eager receive  SENDs and RECVs are posted where they stand and none holds its device up; an
//                  action waits for the messages it needs (PyTorch's pipelining runtime)
//   just in time   a device stands still at each SEND until its RECV is reached, and at each RECV
//                  until its SEND is reached (blocking calls; one stream of a GPU transport)
//   grouped        messages that stand together on a list, without an action between them, are
//                  handed over together and the device goes on when all are through (batched calls)

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/actions/schedule.h"

namespace frazil {

enum class MessageLowering : std::uint8_t { kEagerReceive, kJustInTime, kGrouped };

std::string_view message_lowering_name(MessageLowering lowering);  // "eager receive", ...

// Returns none when every list comes to its end. Otherwise returns one sentence that names who
// waits for whom, "device 0 waits at 0SEND_F1 for 1RECV_F1, but device 1 waits at 1SEND_B0", or
// that names two ends that would meet but belong to different messages.
std::optional<std::string> find_deadlock(const Schedule& completed, MessageLowering lowering);

}  // namespace frazil
