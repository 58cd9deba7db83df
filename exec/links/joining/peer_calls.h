#pragma once
// Connects a process to its peers: it dials those with lower numbers and takes the calls of those
// with higher ones, two connections each (LinkSocket).

#include <functional>
#include <string>
#include <vector>

#include "exec/links/joining/joiners.h"

namespace frazil {

// Returns the key of a run's connections: only who knows the token, or was welcomed, has it.
Secret session_key(const std::optional<Secret>& token, const Secret& session);

// A process that dials.
struct DialOptions {
  int process = 0;
  std::uint64_t epoch = 0;
  Secret key{};
  SocketAddress from = {};  // its own address; any port
  JoinCheck check = {};     // may be empty
};

// Returns both connections to the peer `number` at `address`. Throws PeerLost at `until`, or if the
// peer refuses.
PeerSockets dial_peer(const DialOptions& options, int number, const SocketAddress& address,
                      JoinClock::time_point until);

// Takes calls at `door` until both connections of all processes in `expected` are there, and places
// them in `peers`; others that call are hung up on. `check` is called several times a second and
// throws if going on makes no sense. Throws PeerLost at `until`, naming the first that is missing.
void accept_calls(Joiners& door, const std::vector<int>& expected, std::vector<PeerSockets>& peers,
                  JoinClock::time_point until, const std::function<void(Arrivals&)>& check);

}  // namespace frazil
