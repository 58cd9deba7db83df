#pragma once
// The leader's side of the joining: lets processes in until all places of the launch are taken,
// gives them their numbers, and takes their connections.

#include "exec/links/joining/joined_world.h"
#include "exec/links/joining/launch_environment.h"

namespace frazil {

// Takes over the listening socket. Throws PeerLost if not all have come by `until`, or if one of
// them goes after all had come.
JoinedWorld gather_world(const LaunchPlace& place, const JoinOptions& options, Descriptor listener,
                         const std::optional<Secret>& token, JoinClock::time_point until);

// Returns "process 2 at 127.0.0.1:40312".
std::string name_of(int number, const Joiner& joiner);

}  // namespace frazil
