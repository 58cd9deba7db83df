#include "exec/links/peer_sockets.h"

#include <utility>

#include "exec/links/socket.h"

namespace frazil {

LinkSocket socket_of(MessageLane lane) {
  switch (lane) {
    case MessageLane::kActivation:
    case MessageLane::kActivationGradient:
    case MessageLane::kNorms:
    case MessageLane::kProbe:
      return LinkSocket::kSteps;
    case MessageLane::kReduction:
    case MessageLane::kState:
      return LinkSocket::kBulk;
  }
  return LinkSocket::kBulk;
}

std::vector<std::vector<PeerSockets>> make_socket_pairs(int processes) {
  const auto count = static_cast<std::size_t>(processes);
  std::vector<std::vector<PeerSockets>> sockets(count);
  for (auto& row : sockets) row.resize(count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      SocketPair steps = make_socket_pair();
      SocketPair bulk = make_socket_pair();
      sockets[a][b] = {std::move(steps[0]), std::move(bulk[0])};
      sockets[b][a] = {std::move(steps[1]), std::move(bulk[1])};
    }
  }
  return sockets;
}

}  // namespace frazil
