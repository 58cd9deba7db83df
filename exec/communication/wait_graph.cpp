#include "exec/communication/wait_graph.h"

#include <functional>
#include <string>

#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

// Ranks from the one that waits to the one at which the search ends.
using Path = std::vector<int>;
// Decides whether the search ends at an edge: the waiting rank and its peer.
using Goal = std::function<bool(int, int)>;

const std::optional<Wait>& wait_of(const WaitGraph& graph, int rank) {
  return graph.waits[static_cast<std::size_t>(rank)];
}

bool find_path(const WaitGraph& graph, const Goal& goal, std::vector<bool>& seen, Path& path) {
  const int rank = path.back();
  if (!wait_of(graph, rank)) return false;
  for (const int peer : wait_of(graph, rank)->peers) {
    path.push_back(peer);
    if (goal(rank, peer)) return true;
    if (!seen[static_cast<std::size_t>(peer)]) {
      seen[static_cast<std::size_t>(peer)] = true;
      if (find_path(graph, goal, seen, path)) return true;
    }
    path.pop_back();
  }
  return false;
}

// Returns the path from `rank` to the goal; empty if there is none.
Path find_path(const WaitGraph& graph, int rank, const Goal& goal) {
  std::vector<bool> seen(graph.waits.size(), false);
  seen[static_cast<std::size_t>(rank)] = true;
  Path path{rank};
  return find_path(graph, goal, seen, path) ? path : Path{};
}

// True if the peer has done its part of the job in which `rank` waits, which is the job after those
// that `rank` has finished.
bool has_left(const WaitGraph& graph, int rank, int peer) {
  return graph.finished[static_cast<std::size_t>(peer)] >
         graph.finished[static_cast<std::size_t>(rank)];
}

std::string name(int rank) { return "rank " + std::to_string(rank); }

// Returns "the activation of ... from rank 1" or "a barrier for rank 1".
std::string name_wait(const Wait& wait, int peer) {
  return wait.message ? to_text(*wait.message) + " from " + name(peer)
                      : "a barrier for " + name(peer);
}

// Returns the waits along the path except the first: ", which waits for ... from rank 0".
std::string name_rest(const WaitGraph& graph, const Path& path) {
  std::string text;
  for (std::size_t i = 1; i + 1 < path.size(); ++i) {
    const Wait& wait = *wait_of(graph, path[i]);
    text +=
        (wait.message ? ", which waits for " : ", which waits at ") + name_wait(wait, path[i + 1]);
  }
  return text;
}

CommunicationFault make_fault(const WaitGraph& graph, CommunicationFault::Kind kind,
                              const Path& path) {
  const Wait& wait = *wait_of(graph, path[0]);
  CommunicationFault fault{.kind = kind,
                           .rank = path[0],
                           .peer = path[1],
                           .step = {},
                           .awaited = "a barrier",
                           .sentence = {}};
  if (wait.message) {
    fault.step = wait.message->step;
    fault.awaited = to_text(*wait.message);
  }
  return fault;
}

std::string name_waiter(const WaitGraph& graph, const Path& path) {
  const Wait& wait = *wait_of(graph, path[0]);
  return name(path[0]) + (wait.message ? " waits for " : " waits at ") + name_wait(wait, path[1]);
}

}  // namespace

std::optional<CommunicationFault> find_dead_wait(const WaitGraph& graph, int rank) {
  using Kind = CommunicationFault::Kind;
  const Path dead =
      find_path(graph, rank, [&](int waiting, int peer) { return has_left(graph, waiting, peer); });
  if (!dead.empty()) {
    CommunicationFault fault = make_fault(graph, Kind::kPeerLeft, dead);
    const bool for_good = graph.finished[static_cast<std::size_t>(dead.back())] == kEveryJob;
    fault.sentence = name_waiter(graph, dead) + name_rest(graph, dead) +
                     (for_good ? ", which has left" : ", which has ended its part");
    return fault;
  }
  const Path ring = find_path(graph, rank, [&](int, int peer) { return peer == rank; });
  if (ring.empty()) return std::nullopt;
  CommunicationFault fault = make_fault(graph, Kind::kDeadlock, ring);
  fault.sentence = name_waiter(graph, ring) + name_rest(graph, ring);
  return fault;
}

CommunicationFault make_expiry(const WaitGraph& graph, int rank, Duration waited) {
  const Wait& wait = *wait_of(graph, rank);
  ENSURE(!wait.peers.empty(), "who waits, waits for somebody");
  Path path = find_path(graph, rank, [&](int, int peer) { return !wait_of(graph, peer); });
  // All ranks sleep and none is to blame: the last message came between the deadline and this look.
  if (path.empty()) path = {rank, wait.peers.front()};
  CommunicationFault fault = make_fault(graph, CommunicationFault::Kind::kDeadline, path);
  fault.sentence = name(rank) + " waited " + to_text(waited) + (wait.message ? " for " : " at ") +
                   name_wait(wait, path[1]) + name_rest(graph, path);
  return fault;
}

}  // namespace frazil
