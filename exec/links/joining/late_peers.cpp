#include "exec/links/joining/late_peers.h"

#include <utility>

#include "exec/links/joining/peer_calls.h"
#include "profiles/error.h"

namespace frazil {

LatePeers::LatePeers(JoinedWorld& world)
    : door_(std::move(world.door)),
      process_(world.process),
      key_(session_key(world.token, world.session)),
      leader_(world.leader) {
  ENSURE(door_ != nullptr && !world.leads(), "a member listens for its peers");
}

PeerSockets LatePeers::take_calls(int number, std::uint64_t epoch, Duration limit,
                                  const JoinCheck& check) {
  std::vector<PeerSockets> peers(static_cast<std::size_t>(number) + 1);
  door_->admit_peers(process_, epoch, key_);
  accept_calls(*door_, {number}, peers, JoinClock::now() + limit, [&](Arrivals&) { check(); });
  return std::move(peers.back());
}

std::map<int, PeerSockets> LatePeers::dial(const std::map<int, SocketAddress>& others,
                                           std::uint64_t epoch, Duration limit,
                                           const JoinCheck& check) const {
  const auto until = JoinClock::now() + limit;
  const DialOptions options{process_, epoch, key_, {door_->address().host, 0}, check};
  std::map<int, PeerSockets> dialled;
  for (const auto& [number, address] : others) {
    dialled.emplace(number, dial_peer(options, number, number == 0 ? leader_ : address, until));
  }
  return dialled;
}

}  // namespace frazil
