#pragma once
// Sockets that one process hands to another over a Unix socket which both have already: so
// processes of one machine get to know a new one without anything that listens or has a name.

#include <cstdint>
#include <optional>

#include "exec/links/peer_sockets.h"
#include "profiles/units.h"

namespace frazil {

// The sockets to a process, for the world of an epoch.
struct PassedSockets {
  std::uint32_t epoch = 0;
  int process = 0;
  PeerSockets sockets;
};

// Sends them; both processes have them then, until the caller lets go. Throws SocketError.
void pass_sockets(const Descriptor& to, const PassedSockets& passed);

// Waits for the next ones; none if none have come within `limit`. Throws SocketError if the other
// end is gone or has sent something else.
std::optional<PassedSockets> take_passed(const Descriptor& from, Duration limit);

}  // namespace frazil
