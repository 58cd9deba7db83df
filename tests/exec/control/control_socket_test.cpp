// What an end of a control connection cannot send whole ends the connection, so that the other end
// never reads one message inside of another.

#include "exec/control/control_socket.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "exec/links/socket.h"

namespace frazil {
namespace {

// Returns what comes until the connection ends; "goes on" stands for an end that does not come.
std::vector<std::string> read_to_the_end(ControlSocket& socket) {
  std::vector<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    std::vector<ControlMessage> messages;
    bool is_open = true;
    try {
      is_open = socket.receive(messages);
    } catch (const WireError&) {
      seen.emplace_back("no message");
      return seen;
    }
    for (std::size_t m = 0; m < messages.size(); ++m) seen.emplace_back("a message");
    if (!is_open) return seen;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  seen.emplace_back("goes on");
  return seen;
}

TEST(ControlSocketTest, EndsWhereAMessageIsCutOff) {
  SocketPair pair = make_socket_pair();
  ControlSocket sender(std::move(pair[0]));
  ControlSocket receiver(std::move(pair[1]));
  ASSERT_TRUE(sender.send(AbortMessage{"a cause"}));
  // More than the system keeps for a receiver that reads nothing.
  ASSERT_FALSE(sender.send(OrderMessage{.number = 1, .job = std::string(1 << 23, 'j')}));
  std::vector<ControlMessage> first;
  (void)receiver.receive(first);  // there is room again
  ASSERT_EQ(first.size(), 1U);
  EXPECT_FALSE(sender.send(AbortMessage{"another cause"}));
  EXPECT_EQ(read_to_the_end(receiver), std::vector<std::string>{});
}

}  // namespace
}  // namespace frazil
