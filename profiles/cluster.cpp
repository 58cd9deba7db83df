#include "profiles/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "profiles/error.h"

namespace frazil {
namespace {

using Ends = std::pair<DeviceId, DeviceId>;

Ends ends(const DirectedLink& link) { return {link.from, link.to}; }

class ClusterCheck {
 public:
  ClusterCheck(const Cluster& cluster, const std::string& file) : cluster_(cluster), file_(file) {}

  void check() const {
    if (cluster_.devices.empty()) fail("no device", "at least one");
    check_hosts();
    check_devices();
    check_processes();
    check_link(cluster_.default_link, "the default link");
    for (const LinkClass each : kLinkClasses) {
      check_link(cluster_.usual_link(each), fmt::format("the link of class {}", name_of(each)));
    }
    check_links();
    check_time(cluster_.commit_round.value_or(Duration{0}), "a commit round");
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, 0, found, expected);
  }

  void check_name(std::set<std::string>& names, const std::string& name, const char* noun) const {
    if (name.empty()) fail(fmt::format("a {} without a name", noun), "a name");
    if (!names.insert(name).second) {
      fail(fmt::format("two {}s \"{}\"", noun, name), "names that differ");
    }
  }

  void check_time(Duration time, const std::string& what) const {
    if (time.count() < 0 || time.count() > kLargestQuantity) {
      fail(fmt::format("{} of {} ns", what, time.count()),
           fmt::format("0 to {} ns", kLargestQuantity));
    }
  }

  void check_memory(Bytes memory, const std::string& what) const {
    if (memory.count < 0) fail(fmt::format("{} with {} bytes", what, memory.count), "0 or more");
  }

  void check_hosts() const {
    std::set<std::string> names;
    for (const Host& host : cluster_.hosts) {
      check_name(names, host.name, "host");
      check_memory(host.memory, fmt::format("host \"{}\"", host.name));
    }
  }

  void check_devices() const {
    std::set<std::string> names;
    for (const Device& device : cluster_.devices) {
      check_name(names, device.name, "device");
      const std::string what = fmt::format("device \"{}\"", device.name);
      if (device.host.index() >= cluster_.hosts.size()) {
        fail(fmt::format("{} on host {}", what, device.host.value),
             fmt::format("one of {} hosts", cluster_.hosts.size()));
      }
      check_memory(device.memory_limit, what);
      if (device.time_ppm < 1 || device.time_ppm > kLargestTimePpm) {
        fail(fmt::format("{} with time_ppm {}", what, device.time_ppm),
             fmt::format("1 to {}", kLargestTimePpm));
      }
      check_time(device.action_overhead, what + " with an action overhead");
      check_time(device.step_overhead, what + " with a step overhead");
    }
  }

  void check_processes() const {
    std::map<ProcessId, HostId> host_of;
    for (const Device& device : cluster_.devices) {
      if (device.process == kUnnamedProcess) continue;
      if (device.process < kUnnamedProcess) {
        fail(fmt::format("device \"{}\" in process {}", device.name, device.process.value),
             "a process from 0 up");
      }
      const auto [known, is_new] = host_of.emplace(device.process, device.host);
      if (is_new || known->second == device.host) continue;
      fail(fmt::format("process {} on host \"{}\" and host \"{}\"", device.process.value,
                       cluster_.hosts[known->second.index()].name,
                       cluster_.hosts[device.host.index()].name),
           "every process on one host");
    }
  }

  void check_link(const Link& link, const std::string& what) const {
    check_time(link.latency, what + " with a latency");
    if (link.bandwidth.count < 0) {
      fail(fmt::format("{} with {} bytes per second", what, link.bandwidth.count),
           "0 (unlimited) or more");
    }
  }

  void check_links() const {
    const std::vector<DirectedLink>& links = cluster_.links;
    const std::size_t devices = cluster_.devices.size();
    for (std::size_t i = 0; i < links.size(); ++i) {
      const std::string what =
          fmt::format("a link from device {} to {}", links[i].from.value, links[i].to.value);
      if (links[i].from.index() >= devices || links[i].to.index() >= devices) {
        fail(what, fmt::format("two of {} devices", devices));
      }
      if (links[i].from == links[i].to) fail(what, "two different devices");
      if (i > 0 && ends(links[i - 1]) >= ends(links[i])) {
        fail(what + (ends(links[i - 1]) == ends(links[i]) ? " again" : " out of order"),
             "links in ascending order of (from, to), each once");
      }
      check_link(links[i].link, what);
    }
  }

  const Cluster& cluster_;
  const std::string& file_;
};

}  // namespace

std::string_view name_of(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::kProcess:
      return "process";
    case LinkClass::kHost:
      return "host";
    case LinkClass::kNetwork:
      return "network";
  }
  return "";
}

bool LinkClasses::empty() const {
  return std::none_of(by_class.begin(), by_class.end(),
                      [](const std::optional<Link>& link) { return link.has_value(); });
}

LinkClass Cluster::class_of(DeviceId from, DeviceId to) const {
  const Device& one = devices[from.index()];
  const Device& other = devices[to.index()];
  if (one.host != other.host) return LinkClass::kNetwork;
  return one.process == other.process ? LinkClass::kProcess : LinkClass::kHost;
}

const Link& Cluster::usual_link(LinkClass link_class) const {
  const std::optional<Link>& own = link_classes[link_class];
  return own ? *own : default_link;
}

Link Cluster::link(DeviceId from, DeviceId to) const {
  ENSURE(from.index() < devices.size() && to.index() < devices.size(), "no such device");
  if (from == to) return Link{};
  const auto place = std::lower_bound(
      links.begin(), links.end(), Ends{from, to},
      [](const DirectedLink& link, const Ends& wanted) { return ends(link) < wanted; });
  const bool is_listed = place != links.end() && ends(*place) == Ends{from, to};
  return is_listed ? place->link : usual_link(class_of(from, to));
}

Cluster make_uniform_cluster(int devices, Bytes memory_limit, Link link) {
  ENSURE(devices > 0 && memory_limit.count >= 0, "a cluster has devices, and they have memory");
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  const bool fits = memory_limit.count <= kUnlimited / devices;
  Cluster cluster;
  cluster.hosts = {{"host0", fits ? memory_limit * devices : Bytes{kUnlimited}}};
  for (int device = 0; device < devices; ++device) {
    cluster.devices.push_back(
        {.name = fmt::format("device{}", device), .host = HostId{0}, .memory_limit = memory_limit});
  }
  cluster.default_link = link;
  return cluster;
}

void validate(const Cluster& cluster, const std::string& file) {
  ClusterCheck(cluster, file).check();
}

}  // namespace frazil
