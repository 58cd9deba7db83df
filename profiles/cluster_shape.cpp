#include "profiles/cluster_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"
#include "profiles/processes.h"

namespace frazil {
namespace {

// Appends the links between the devices [first, last) of one host, in order of (from, to).
void add_links(std::vector<DirectedLink>& links, int first, int last, Link link) {
  for (int from = first; from < last; ++from) {
    for (int to = first; to < last; ++to) {
      if (from != to) links.push_back({DeviceId{from}, DeviceId{to}, link});
    }
  }
}

void add_processes(const ClusterShape& shape, int hosts, Cluster& cluster) {
  deal_processes(cluster, shape.processes, "cluster");
  cluster.commit_round = shape.commit_round;
  if (!shape.in_process) return;
  cluster.link_classes[LinkClass::kProcess] = shape.in_process;
  cluster.link_classes[LinkClass::kHost] = shape.within;
  if (hosts > 1) cluster.link_classes[LinkClass::kNetwork] = shape.between;
}

}  // namespace

Cluster make_cluster(const ClusterShape& shape) {
  ENSURE(shape.devices > 0 && shape.per_host > 0, "a cluster has devices on hosts");
  const int hosts = divide_up(shape.devices, shape.per_host);
  const bool lists_links = hosts > 1 && !shape.in_process;
  const std::int64_t links_of_a_device = lists_links ? shape.per_host - 1 : 0;
  if (shape.devices > kMostDevices || links_of_a_device * shape.devices > kMostLinks) {
    throw InputError("cluster", 0,
                     fmt::format("{} devices, {} on a host", shape.devices, shape.per_host),
                     fmt::format("at most {} devices and {} links", kMostDevices, kMostLinks));
  }
  Cluster cluster;
  cluster.provenance = shape.provenance;
  cluster.default_link = hosts == 1 ? shape.within : shape.between;
  for (int host = 0; host < hosts; ++host) {
    cluster.hosts.push_back({fmt::format("host{}", host), shape.host_memory});
    const int first = host * shape.per_host;
    const int last = std::min(first + shape.per_host, shape.devices);
    for (int device = first; device < last; ++device) {
      cluster.devices.push_back({.name = fmt::format("device{}", device),
                                 .host = HostId{host},
                                 .memory_limit = shape.memory});
    }
    if (lists_links) add_links(cluster.links, first, last, shape.within);
  }
  if (shape.processes > 0) add_processes(shape, hosts, cluster);
  validate(cluster, "cluster");
  return cluster;
}

}  // namespace frazil
