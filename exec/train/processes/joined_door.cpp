#include "exec/train/processes/joined_door.h"

#include <memory>
#include <utility>

#include "exec/links/joining/late_peers.h"
#include "exec/links/joining/launch_environment.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// All connect at the same time, on one machine or over a network.
constexpr Duration kConnecting = std::chrono::seconds(10);

SocketAddress parse_socket_address(const std::string& text) {
  const LaunchAddress address = parse_address(text, "address of a process");
  return {address.host, static_cast<std::uint16_t>(address.port)};
}

std::map<int, SocketAddress> addresses_of(const ConnectJob& job) {
  if (job.others.size() != job.addresses.size()) {
    throw PeerLost("the leader does not say where the other processes are");
  }
  std::map<int, SocketAddress> addresses;
  for (std::size_t i = 0; i < job.others.size(); ++i) {
    SocketAddress& address = addresses[job.others[i]];
    if (job.others[i] != 0) address = parse_socket_address(job.addresses[i]);
  }
  return addresses;
}

}  // namespace

JoinedDoor::JoinedDoor(JoinedWorld& world, std::function<void(const std::string&)> tell)
    : tell_(std::move(tell)), door_(world, tell_) {
  for (std::size_t process = 1; process < world.members.size(); ++process) {
    addresses_[static_cast<int>(process)] = to_text(world.members[process].address);
  }
}

std::vector<Newcomer> JoinedDoor::let_in(std::set<int> vacant) {
  std::vector<Newcomer> newcomers;
  for (Joiner& joiner : door_.take_joiners()) {
    if (vacant.empty()) {
      const std::string sentence = "finds no vacant place in the run";
      refuse(joiner, sentence);
      tell_(joiner.name + " " + sentence);
      continue;
    }
    const int process = *vacant.begin();
    try {
      door_.welcome(joiner, process);
    } catch (const PeerLost& error) {
      tell_(error.what());
      continue;
    }
    vacant.erase(process);
    addresses_[process] = to_text(joiner.address);
    newcomers.push_back({process, std::move(joiner.socket)});
  }
  return newcomers;
}

ConnectJob JoinedDoor::introduce(int process, std::uint32_t epoch, const std::set<int>& others) {
  ConnectJob job{.process = process, .epoch = epoch, .others = {}, .addresses = {}};
  for (const int other : others) {
    job.others.push_back(other);
    job.addresses.push_back(other == 0 ? "" : addresses_.at(other));
  }
  door_.expect_calls(epoch);
  return job;
}

std::map<int, PeerSockets> JoinedDoor::take_calls(const ConnectJob& job,
                                                  const std::function<void()>& check) {
  std::map<int, PeerSockets> sockets;
  sockets.emplace(job.process, door_.take_calls(job.process, kConnecting, check));
  return sockets;
}

LateSockets late_sockets_of(JoinedWorld& world) {
  if (!world.door) return {};
  const auto peers = std::make_shared<LatePeers>(world);
  return
      [peers, process = world.process](const ConnectJob& job, const std::function<void()>& check) {
        if (job.process == process) {
          return peers->dial(addresses_of(job), job.epoch, kConnecting, check);
        }
        std::map<int, PeerSockets> sockets;
        sockets.emplace(job.process, peers->take_calls(job.process, job.epoch, kConnecting, check));
        return sockets;
      };
}

}  // namespace frazil
