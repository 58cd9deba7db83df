#include "exec/links/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kStream = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kBacklog = 1024;  // members of a large run may all join at once

[[noreturn]] void fail(const std::string& what, int error) {
  throw SocketError(what + ": " + std::system_category().message(error));
}

struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

std::optional<SystemAddress> parse(const SocketAddress& address) {
  SystemAddress system;
  auto* four = reinterpret_cast<sockaddr_in*>(&system.storage);
  if (inet_pton(AF_INET, address.host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(address.port);
    system.bytes = sizeof(sockaddr_in);
    return system;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&system.storage);
  if (inet_pton(AF_INET6, address.host.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(address.port);
    system.bytes = sizeof(sockaddr_in6);
    return system;
  }
  return std::nullopt;
}

SystemAddress to_system(const SocketAddress& address) {
  const std::optional<SystemAddress> system = parse(address);
  if (!system) {
    throw SocketError("found the address `" + address.host + "`, expected a numeric one");
  }
  return *system;
}

SocketAddress from_system(SystemAddress system) {
  char host[INET6_ADDRSTRLEN] = "";
  if (system.family() == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&system.storage);
    inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
    return {host, ntohs(six->sin6_port)};
  }
  const auto* four = reinterpret_cast<const sockaddr_in*>(&system.storage);
  inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
  return {host, ntohs(four->sin_port)};
}

void switch_on(const Descriptor& socket, int level, int option) {
  const int on = 1;
  setsockopt(socket.number(), level, option, &on, sizeof on);
}

Descriptor open_tcp(const SystemAddress& address) {
  Descriptor socket(::socket(address.family(), kStream, IPPROTO_TCP));
  if (!socket.is_open()) fail("cannot make a socket", errno);
  // A dual-stack listener would be reached at addresses of IPv4 as well.
  if (address.family() == AF_INET6) switch_on(socket, IPPROTO_IPV6, IPV6_V6ONLY);
  return socket;
}

// Returns whether the socket is ready before `until`.
bool wait_for(const Descriptor& socket, short events, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    pollfd entry{socket.number(), events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<long long>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail("cannot wait for a socket", errno);
    if (Clock::now() >= until) return false;
  }
}

// Returns 0, or the error that the connection met.
int try_to_connect(const Descriptor& socket, SystemAddress peer, Clock::time_point until) {
  if (::connect(socket.number(), peer.get(), peer.bytes) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_for(socket, POLLOUT, until)) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

}  // namespace

std::string to_text(const SocketAddress& address) {
  const bool is_six = address.host.find(':') != std::string::npos;
  return (is_six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool is_numeric(const SocketAddress& address) { return parse(address).has_value(); }

bool is_loopback(const SocketAddress& address) {
  const std::optional<SystemAddress> system = parse(address);
  if (!system) return false;
  if (system->family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(
        &reinterpret_cast<const sockaddr_in6*>(&system->storage)->sin6_addr);
  }
  const auto* four = reinterpret_cast<const sockaddr_in*>(&system->storage);
  return (ntohl(four->sin_addr.s_addr) >> 24) == 127;
}

SocketPair make_socket_pair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, kStream, 0, ends) != 0) fail("cannot make a pair of sockets", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor listen_at(const SocketAddress& address) {
  SystemAddress system = to_system(address);
  Descriptor socket = open_tcp(system);
  switch_on(socket, SOL_SOCKET, SO_REUSEADDR);
  if (bind(socket.number(), system.get(), system.bytes) != 0 ||
      listen(socket.number(), kBacklog) != 0) {
    fail("cannot listen at " + to_text(address), errno);
  }
  return socket;
}

bool is_tcp(const Descriptor& socket) {
  int family = AF_UNSPEC;
  socklen_t bytes = sizeof family;
  getsockopt(socket.number(), SOL_SOCKET, SO_DOMAIN, &family, &bytes);
  return family == AF_INET || family == AF_INET6;
}

SocketAddress address_of(const Descriptor& socket) {
  SystemAddress system;
  system.bytes = sizeof system.storage;
  if (getsockname(socket.number(), system.get(), &system.bytes) != 0) {
    fail("cannot read the address of a socket", errno);
  }
  return from_system(system);
}

SocketAddress peer_of(const Descriptor& socket) {
  SystemAddress system;
  system.bytes = sizeof system.storage;
  if (getpeername(socket.number(), system.get(), &system.bytes) != 0) {
    fail("cannot read the address at the other end of a socket", errno);
  }
  return from_system(system);
}

Descriptor accept_from(const Descriptor& listener, Duration limit) {
  const auto until = Clock::now() + limit;
  while (wait_for(listener, POLLIN, until)) {
    Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_open()) {
      switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
      return socket;
    }
    // Who came may have gone again meanwhile.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
      fail("cannot accept a connection", errno);
    }
  }
  return {};
}

Descriptor connect_to(const SocketAddress& peer, const SocketAddress& from, Duration limit) {
  const auto until = Clock::now() + limit;
  const SystemAddress target = to_system(peer);
  SystemAddress own = to_system(from);
  for (auto pause = milliseconds(1);; pause = std::min(2 * pause, milliseconds(100))) {
    Descriptor socket = open_tcp(target);
    if (bind(socket.number(), own.get(), own.bytes) != 0) {
      fail("cannot connect from " + to_text(from), errno);
    }
    const int error = try_to_connect(socket, target, until);
    if (error == 0) {
      switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
      return socket;
    }
    if (Clock::now() + pause >= until) fail("cannot connect to " + to_text(peer), error);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace frazil
