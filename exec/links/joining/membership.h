#pragma once
// A member's side of the joining: says hello to the leader, and connects to its peers.

#include "exec/links/joining/joined_world.h"
#include "exec/links/joining/launch_environment.h"

namespace frazil {

// Takes over a connection to the leader. Throws InputError if the leader refuses or has another
// token, PeerLost if it goes, or if not all peers are connected by `until`.
JoinedWorld become_member(const LaunchPlace& place, const JoinOptions& options, Descriptor leader,
                          const std::optional<Secret>& token, JoinClock::time_point until);

}  // namespace frazil
