#pragma once
// One end of the connection between leader and member. Any thread may send; one thread receives.

#include <mutex>
#include <string>
#include <vector>

#include "exec/control/control_message.h"
#include "exec/links/descriptor.h"

namespace frazil {

class ControlSocket {
 public:
  // Takes a stream socket that does not block.
  explicit ControlSocket(Descriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const { return socket_.number(); }
  // Sends all of the message. Returns false if the connection has ended, or if the other end takes
  // nothing for two seconds.
  bool send(const ControlMessage& message);
  // Appends the messages that have come; never waits. Returns false if the connection has ended.
  // Throws WireError for bytes that are no message.
  bool receive(std::vector<ControlMessage>& messages);
  // Ends the connection for both ends; a thread that waits for it is woken.
  void shut_down();

 private:
  Descriptor socket_;
  std::mutex sending_;
  std::string received_;  // the beginning of a message
};

}  // namespace frazil
