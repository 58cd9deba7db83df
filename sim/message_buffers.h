#pragma once
// Buffers of messages. A message is a Transfer task. Its receiver is the first task on the
// destination device that depends on the message; it takes the message when it starts. A message
// whose receiver is there (next on its idle lane) may always start. Any other message needs one of
// the k buffers of its channel, sender to receiver, and holds the buffer until it is taken; so k =
// 0 is rendezvous. A message that no task on the destination device waits for needs no buffer.

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/task_graph.h"

namespace frazil {

// The receivers and channels of messages, collected once per graph.
struct MessageRoutes {
  std::vector<TaskId> receiver;        // by task; kNoTask unless it is a message with a receiver
  std::vector<std::uint32_t> channel;  // by task, for messages with a receiver
  std::size_t channels = 0;
};

MessageRoutes find_message_routes(const TaskGraph& graph);

class MessageBuffers {
 public:
  // `routes` must outlive this.
  MessageBuffers(const MessageRoutes& routes, int buffers);

  bool has_room(TaskId message) const { return used_[routes_.channel[message]] < buffers_; }
  void take(TaskId message);
  // Gives back the message's buffer. Returns false if the message had none.
  bool give_back(TaskId message);
  bool is_held(TaskId message) const { return held_[message]; }

 private:
  const MessageRoutes& routes_;
  int buffers_;
  std::vector<int> used_;   // by channel
  std::vector<bool> held_;  // by task
};

}  // namespace frazil
