// Joins the launch that it is part of, says its number to every peer over both connections, hears
// theirs, and prints "process 1 of 2 joined (start 0)". With `fail-first` the last process ends
// with code 1 once it has joined, unless the launcher has started it again.

#include <poll.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "exec/links/joining/join.h"

namespace frazil {
namespace {

bool hear_number(const Descriptor& socket, int expected) {
  pollfd entry{socket.number(), POLLIN, 0};
  int number = -1;
  return ::poll(&entry, 1, 20'000) == 1 &&
         ::recv(socket.number(), &number, sizeof number, 0) == sizeof number && number == expected;
}

bool greet_peers(const JoinedWorld& world) {
  bool is_well = true;
  for (const PeerSockets& peer : world.peers) {
    for (const Descriptor* socket : {&peer.steps, &peer.bulk}) {
      if (!socket->is_open()) continue;
      is_well &= ::send(socket->number(), &world.process, sizeof(int), MSG_NOSIGNAL) == sizeof(int);
    }
  }
  for (int i = 0; i < world.processes; ++i) {
    if (i == world.process) continue;
    const PeerSockets& peer = world.peers[static_cast<std::size_t>(i)];
    is_well &= peer.are_open() && hear_number(peer.steps, i) && hear_number(peer.bulk, i);
  }
  return is_well;
}

int run(bool fails_first) {
  const std::optional<LaunchPlace> place = find_launch_place({}, read_environment());
  if (!place) {
    std::fputs("nothing launched this process\n", stderr);
    return 2;
  }
  JoinOptions options;
  options.facts = {.version = "test", .build = 1, .run = 2, .kernels = 3, .devices = 1};
  options.limit = std::chrono::seconds(60);
  const JoinedWorld world = join_world(*place, options);
  if (!greet_peers(world)) return 3;
  std::printf("process %d of %d joined (start %d)\n", world.process, world.processes,
              place->restarts);
  std::fflush(stdout);
  const bool is_last = world.process == world.processes - 1;
  return fails_first && is_last && place->restarts == 0 ? 1 : 0;
}

}  // namespace
}  // namespace frazil

int main(int count, char** words) {
  try {
    return frazil::run(count > 1 && std::strcmp(words[1], "fail-first") == 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
