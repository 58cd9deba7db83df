// Sockets listen exactly where they are told to, and what the system refuses is one sentence.

#include "exec/links/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const SocketError& error) {
    return error.what();
  }
  return "";
}

void expect_carries_bytes(const Descriptor& from, const Descriptor& to) {
  ASSERT_EQ(send(from.number(), "abc", 3, MSG_NOSIGNAL), 3);
  char bytes[4] = "";
  for (int i = 0; i < 1000 && recv(to.number(), bytes, 3, 0) != 3; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_STREQ(bytes, "abc");
}

void expect_is_ready_for_use(const Descriptor& socket) {
  EXPECT_NE(fcntl(socket.number(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(fcntl(socket.number(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(Socket, APairCarriesBytesBothWays) {
  const SocketPair pair = make_socket_pair();
  for (const Descriptor& end : pair) expect_is_ready_for_use(end);
  expect_carries_bytes(pair[0], pair[1]);
  expect_carries_bytes(pair[1], pair[0]);
}

TEST(Socket, ADescriptorClosesItsFileOnce) {
  SocketPair pair = make_socket_pair();
  Descriptor moved = std::move(pair[0]);
  EXPECT_FALSE(pair[0].is_open());
  EXPECT_TRUE(moved.is_open());
  const int number = moved.number();
  moved.close();
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
  EXPECT_FALSE(moved.is_open());
}

TEST(Socket, ListensAtTheGivenAddressAloneAndConnectsFromOne) {
  const Descriptor listener = listen_at({});
  const SocketAddress address = address_of(listener);
  EXPECT_EQ(address.host, "127.0.0.1");
  EXPECT_NE(address.port, 0);
  const Descriptor client = connect_to(address, {}, seconds(10));
  const Descriptor server = accept_from(listener, seconds(10));
  ASSERT_TRUE(server.is_open());
  for (const Descriptor* end : {&client, &server}) expect_is_ready_for_use(*end);
  EXPECT_EQ(peer_of(client), address);
  EXPECT_EQ(peer_of(server), address_of(client));
  expect_carries_bytes(client, server);
  expect_carries_bytes(server, client);
}

TEST(Socket, WaitsForAListenerThatComesLater) {
  SocketAddress address;
  {
    const Descriptor first = listen_at({});
    address = address_of(first);
  }
  Descriptor late;
  std::thread listening([&] {
    std::this_thread::sleep_for(milliseconds(20));
    late = listen_at(address);
  });
  const Descriptor client = connect_to(address, {}, seconds(10));
  EXPECT_TRUE(client.is_open());
  listening.join();
}

TEST(Socket, GivesUpAtTheLimit) {
  const Descriptor listener = listen_at({});
  EXPECT_FALSE(accept_from(listener, milliseconds(5)).is_open());
  SocketAddress nobody;
  {
    const Descriptor gone = listen_at({});
    nobody = address_of(gone);
  }
  EXPECT_EQ(failure_of([&] { (void)connect_to(nobody, {}, milliseconds(5)); }),
            "cannot connect to " + to_text(nobody) + ": Connection refused");
}

TEST(Socket, NamesTheAddressThatCannotBeUsed) {
  EXPECT_EQ(failure_of([] { (void)listen_at({.host = "localhost"}); }),
            "found the address `localhost`, expected a numeric one");
  EXPECT_EQ(failure_of([] { (void)listen_at({.host = "192.0.2.77"}); }),
            "cannot listen at 192.0.2.77:0: Cannot assign requested address");
  const Descriptor listener = listen_at({});
  EXPECT_EQ(failure_of([&] { (void)listen_at(address_of(listener)); }),
            "cannot listen at " + to_text(address_of(listener)) + ": Address already in use");
}

TEST(Socket, TellsTheLoopbackFromOtherAddresses) {
  EXPECT_TRUE(is_loopback({.host = "127.0.0.1"}));
  EXPECT_TRUE(is_loopback({.host = "127.8.9.1"}));
  EXPECT_TRUE(is_loopback({.host = "::1"}));
  EXPECT_FALSE(is_loopback({.host = "10.0.0.1"}));
  EXPECT_FALSE(is_loopback({.host = "0.0.0.0"}));
  EXPECT_FALSE(is_loopback({.host = "::"}));
  EXPECT_FALSE(is_loopback({.host = "localhost"}));
  EXPECT_EQ(to_text(SocketAddress{"::1", 80}), "[::1]:80");
}

}  // namespace
}  // namespace frazil
