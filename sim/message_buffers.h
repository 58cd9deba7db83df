#pragma once
// Buffers of messages. A message is a Transfer task; its receiver is the first task on the device
// it goes to that depends on it, and takes the message when it starts. A message whose receiver is
// there (next on its idle lane) may always start; any other needs one of the k buffers of its
// channel, sender to receiver, and holds it until it is taken. So k = 0 is rendezvous. A message
// that no task on that device waits for needs no buffer.

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/task_graph.h"

namespace frazil {

// Who sends what to whom, collected once per graph.
struct MessageRoutes {
  std::vector<TaskId> receiver;        // by task; kNoTask for what is no message with a receiver
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
  // Gives the message's buffer back, if it had one; whether it had.
  bool give_back(TaskId message);
  bool is_held(TaskId message) const { return held_[message]; }

 private:
  const MessageRoutes& routes_;
  int buffers_;
  std::vector<int> used_;   // by channel
  std::vector<bool> held_;  // by task
};

}  // namespace frazil
