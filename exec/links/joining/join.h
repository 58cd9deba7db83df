#pragma once
// Brings the processes of a launch together: they find each other, prove that they belong to one
// run, get their numbers, and connect each to each. One of them leads: it listens, and decides who
// joins. How they find each other follows from the launch (LaunchPlace):
//   --listen, MASTER_ADDR   the first process listens there
//   torchrun's agent store  the first process listens beside it and publishes where
//   one host                the first process listens at the loopback and leaves a file
//   (meeting_file.h)
// Without a token nothing listens or is joined beyond the loopback.

#include "exec/links/joining/joined_world.h"
#include "exec/links/joining/launch_environment.h"

namespace frazil {

// Waits for all processes of the launch. Throws InputError for what cannot be known or must not be
// done, and where the leader turns this process away; PeerLost where others do not come by the
// limit or go again meanwhile. Nothing listens afterwards if it throws.
JoinedWorld join_world(const LaunchPlace& place, const JoinOptions& options);

}  // namespace frazil
