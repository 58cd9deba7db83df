#pragma once
// One end of the connection between leader and member. Any thread may send; one thread receives.

#include <mutex>
#include <string>
#include <string_view>
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
  // nothing for two seconds; then it is ended.
  bool send(const ControlMessage& message) { return send_bytes(to_bytes(message)); }
  // The same of bytes that to_bytes() has made, for messages that go to many.
  bool send_bytes(std::string_view bytes);
  // Sends a message if the connection takes it now, and else leaves it out.
  void offer(const ControlMessage& message);
  // Appends the messages that have come; never waits. Returns false if the connection has ended.
  // Throws WireError for bytes that are no message.
  bool receive(std::vector<ControlMessage>& messages);
  // Ends the connection for both ends; a thread that waits for it is woken.
  void shut_down();

 private:
  bool send_rest(std::string_view left);
  bool write_all(std::string_view left);

  Descriptor socket_;
  std::mutex sending_;
  std::string received_;  // the beginning of a message
};

}  // namespace frazil
