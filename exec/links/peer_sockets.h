#pragma once
// To each process of a run go two sockets: one for what steps wait for and one for bulk, so that a
// large reduction delays no activation.

#include <array>
#include <cstdint>
#include <vector>

#include "exec/links/descriptor.h"
#include "exec/links/message_tag.h"

namespace frazil {

enum class LinkSocket : std::uint8_t { kSteps, kBulk };
inline constexpr std::array<LinkSocket, 2> kLinkSockets = {LinkSocket::kSteps, LinkSocket::kBulk};
LinkSocket socket_of(MessageLane lane);

// The sockets to one process; both closed for the own process, or for one that is gone.
struct PeerSockets {
  Descriptor steps;
  Descriptor bulk;
};

// Returns what each of `processes` processes that a parent will fork needs: entry [a][b] holds the
// sockets of process a to process b.
std::vector<std::vector<PeerSockets>> make_socket_pairs(int processes);

}  // namespace frazil
