#include "tests/exec/communication/process_worlds.h"

namespace frazil {
namespace {

SocketPair make_tcp_pair() {
  const Descriptor listener = listen_at({});
  Descriptor client = connect_to(address_of(listener), {}, std::chrono::seconds(10));
  return {std::move(client), accept_from(listener, std::chrono::seconds(10))};
}

AllLinks make_links(std::vector<std::vector<PeerSockets>> sockets, const LinkOptions& options) {
  AllLinks links;
  for (auto& of_process : sockets) {
    links.push_back(std::make_shared<PeerLinks>(std::move(of_process), options));
  }
  return links;
}

}  // namespace

LinkOptions brief_options() { return {.linger = std::chrono::milliseconds(100)}; }

std::vector<std::vector<PeerSockets>> make_tcp_pairs(int processes) {
  std::vector<std::vector<PeerSockets>> sockets(static_cast<std::size_t>(processes));
  for (auto& row : sockets) row.resize(sockets.size());
  for (std::size_t a = 0; a < sockets.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      SocketPair steps = make_tcp_pair();
      SocketPair bulk = make_tcp_pair();
      sockets[a][b] = {std::move(steps[0]), std::move(bulk[0])};
      sockets[b][a] = {std::move(steps[1]), std::move(bulk[1])};
    }
  }
  return sockets;
}

AllLinks make_unix_links(int processes, const LinkOptions& options) {
  return make_links(make_socket_pairs(processes), options);
}

AllLinks make_tcp_links(int processes, const LinkOptions& options) {
  return make_links(make_tcp_pairs(processes), options);
}

std::vector<int> spread_ranks(int ranks, int processes) {
  std::vector<int> process_of_rank;
  for (int rank = 0; rank < ranks; ++rank) process_of_rank.push_back(rank * processes / ranks);
  return process_of_rank;
}

Ranks make_ranks(const AllLinks& links, std::uint32_t epoch,
                 const std::vector<int>& process_of_rank, const CommunicatorOptions& options) {
  Ranks ranks;
  for (std::size_t process = 0; process < links.size(); ++process) {
    const ProcessPlace place{static_cast<int>(process), process_of_rank};
    for (auto& rank : make_process_communicators(links[process], epoch, place, options)) {
      ranks.push_back(std::move(rank));
    }
  }
  return ranks;
}

}  // namespace frazil
