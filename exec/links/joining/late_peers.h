#pragma once
// Connects a member with processes that come while the run goes on, and one that has come late with
// all that are there. The leader says when (exec/links/joining/open_door.h): then those who are
// there take the calls of the new one, which dials them all.

#include <cstdint>
#include <map>
#include <memory>

#include "exec/links/joining/joined_world.h"

namespace frazil {

class LatePeers {
 public:
  // Takes over the door of a world that this process has joined and does not lead.
  explicit LatePeers(JoinedWorld& world);

  // Both wait until all connections are there. They throw PeerLost after `limit`, and what `check`
  // throws, which is called several times a second.
  PeerSockets take_calls(int number, std::uint64_t epoch, Duration limit, const JoinCheck& check);
  // `others`: where each process is, by its number; the leader's address is known without.
  std::map<int, PeerSockets> dial(const std::map<int, SocketAddress>& others, std::uint64_t epoch,
                                  Duration limit, const JoinCheck& check) const;

 private:
  std::unique_ptr<Joiners> door_;
  int process_;
  Secret key_;
  SocketAddress leader_;
};

}  // namespace frazil
