#include "exec/links/joining/gloo_meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// A port in little endian, the one thing that the leader tells.
using PortBytes = std::array<unsigned char, 2>;

std::uint16_t hear_port(const Descriptor& leader, JoinClock::time_point until) {
  PortBytes bytes{};
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::recv(leader.number(), bytes.data() + size, bytes.size() - size, 0);
    if (got > 0) {
      size += static_cast<std::size_t>(got);
      continue;
    }
    const bool may_come = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!may_come || JoinClock::now() >= until) {
      throw PeerLost("the leader does not say where the processes meet by Gloo");
    }
    pollfd entry{leader.number(), POLLIN, 0};
    (void)::poll(&entry, 1, 100);
  }
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

void tell_port(const JoinedWorld& world, std::uint16_t port) {
  const std::string bytes{static_cast<char>(port & 0xff), static_cast<char>(port >> 8)};
  for (std::size_t i = 0; i < world.control.size(); ++i) {
    if (!world.control[i].is_open() || try_to_send(world.control[i], bytes)) continue;
    throw PeerLost(world.members[i].name + " has gone before the processes met by Gloo");
  }
}

const Descriptor& any_control(const JoinedWorld& world) {
  for (const Descriptor& control : world.control) {
    if (control.is_open()) return control;
  }
  throw PeerLost("no other process is left to meet by Gloo");
}

}  // namespace

std::shared_ptr<GlooLinks> join_by_gloo(const JoinedWorld& world, const std::string& name,
                                        Duration limit, GlooLinkOptions options) {
  const Descriptor& control = any_control(world);
  GlooPlace place{.process = world.process,
                  .processes = world.processes,
                  .own_host = address_of(control).host,
                  .name = name,
                  .limit = limit};
  if (world.leads()) {
    place.listener = listen_at({place.own_host, 0});
    place.store = address_of(place.listener);
    tell_port(world, place.store.port);
  } else {
    place.store = {peer_of(control).host, hear_port(control, JoinClock::now() + limit)};
  }
  return std::make_shared<GlooLinks>(std::make_unique<GlooGroup>(std::move(place)), options);
}

}  // namespace frazil
