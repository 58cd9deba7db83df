#include "exec/train/processes/run_world.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "exec/communication/process_communicator.h"
#include "exec/config/configured_run.h"
#include "exec/disk/hashes.h"
#include "exec/links/socket.h"
#include "profiles/error.h"

namespace frazil {

ProcessHosts find_hosts(const Descriptor& control) {
  if (!is_tcp(control)) return {};
  return {address_of(control).host, peer_of(control).host};
}

std::vector<int> spread_devices(int devices, int processes) {
  ENSURE(processes >= 1 && processes <= devices, "every process has a device");
  std::vector<int> process_of;
  for (int process = 0; process < processes; ++process) {
    const int count = devices / processes + (process < devices % processes ? 1 : 0);
    process_of.insert(process_of.end(), static_cast<std::size_t>(count), process);
  }
  return process_of;
}

void spread_over(Cluster& cluster, int processes) {
  const std::vector<int> process_of =
      spread_devices(static_cast<int>(cluster.devices.size()), processes);
  for (std::size_t d = 0; d < process_of.size(); ++d) {
    cluster.devices[d].process = ProcessId{process_of[d]};
  }
}

PoolPlace place_of(const std::vector<int>& process_of, int process) {
  const auto first = std::find(process_of.begin(), process_of.end(), process);
  ENSURE(first != process_of.end(), "every process has a device");
  return {.devices = static_cast<int>(process_of.size()),
          .first = DeviceId{static_cast<std::int32_t>(first - process_of.begin())},
          .count = static_cast<int>(std::count(first, process_of.end(), process)),
          .process_of = process_of};
}

RunWorld::Join join_over_links(std::vector<PeerSockets> peers, int process,
                               bool has_core_per_rank) {
  return join_over_links(std::make_shared<PeerLinks>(std::move(peers)), process, has_core_per_rank);
}

RunWorld::Join join_over_links(std::shared_ptr<PeerLinks> links, int process,
                               bool has_core_per_rank) {
  return [links, process, has_core_per_rank](std::uint32_t epoch,
                                             const std::vector<int>& process_of,
                                             const CommunicatorOptions& options) {
    const auto own = std::count(process_of.begin(), process_of.end(), process);
    // A process that keeps to cores of its own has as many as it has ranks.
    const int ranks = has_core_per_rank ? static_cast<int>(own) : std::numeric_limits<int>::max();
    return make_process_communicators(links, epoch, {process, process_of, ranks}, options);
  };
}

RunWorld::Connect connect_over_links(std::shared_ptr<PeerLinks> links, LateSockets sockets) {
  return [links = std::move(links), sockets = std::move(sockets)](
             const ConnectJob& job, const std::function<void()>& check) {
    for (auto& [process, both] : sockets(job, check)) links->connect(process, std::move(both));
  };
}

std::uint64_t hash_data(const Dataset& data) {
  return data.test.hash(data.validation.hash(data.train.hash()));
}

std::string describe_files(const RunConfig& config) {
  std::string text;
  for (const auto& [what, hash] : hash_files(config)) {
    text += (text.empty() ? "" : ", ") + what + " " + hash;
  }
  return text;
}

}  // namespace frazil
