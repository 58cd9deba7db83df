#include "planner/bounds/device_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "profiles/error.h"
#include "profiles/processes.h"

namespace frazil {
namespace {

auto traits(const Device& device) {
  return std::tuple(device.time_ppm, Bytes{-device.memory_limit.count}, device.action_overhead,
                    device.step_overhead);
}

std::size_t index_of(int value) { return static_cast<std::size_t>(value); }

}  // namespace

DeviceGroupClasses::DeviceGroupClasses(const Cluster& cluster, bool joint)
    : cluster_(cluster), tells_processes_(tells_processes(cluster)) {
  find_kinds();
  find_links();
  find_best();
  if (joint) {
    find_arrangements();
  } else {
    std::sort(by_speed_.begin(), by_speed_.end());
    arrangements_.push_back({});
  }
}

void DeviceGroupClasses::find_kinds() {
  for (const Device& device : cluster_.devices) {
    const auto same = [&](const Device& kind) { return traits(kind) == traits(device); };
    if (std::none_of(kinds_.begin(), kinds_.end(), same)) kinds_.push_back(device);
  }
  std::sort(kinds_.begin(), kinds_.end(),
            [](const Device& a, const Device& b) { return traits(a) < traits(b); });
  for (const Device& device : cluster_.devices) {
    const auto same = [&](const Device& kind) { return traits(kind) == traits(device); };
    kind_of_.push_back(
        static_cast<int>(std::find_if(kinds_.begin(), kinds_.end(), same) - kinds_.begin()));
    by_speed_.emplace_back(by_speed_.size());
  }
  sort_by_speed();
}

// Brings the largest process of each kind to the front of its host, and its host to the front of
// the kind, so that a plan has its devices in one process if it can.
void DeviceGroupClasses::sort_by_speed() {
  using Home = std::pair<HostId, ProcessId>;
  std::vector<std::map<Home, int>> sizes(kinds_.size());
  std::vector<Home> homes(kinds_.size());
  const auto home_of = [&](DeviceId id) {
    const Device& device = cluster_.devices[id.index()];
    return Home{device.host, device.process};
  };
  for (const DeviceId id : by_speed_) ++sizes[index_of(kind_of_[id.index()])][home_of(id)];
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const auto smaller = [](const auto& a, const auto& b) { return a.second < b.second; };
    homes[kind] = std::max_element(sizes[kind].begin(), sizes[kind].end(), smaller)->first;
    if (!tells_processes_) homes[kind] = sizes[kind].begin()->first;
  }
  std::sort(by_speed_.begin(), by_speed_.end(), [&](DeviceId a, DeviceId b) {
    const auto key = [&](DeviceId id) {
      const int kind = kind_of_[id.index()];
      const auto [host, process] = home_of(id);
      const auto [first_host, first_process] = homes[index_of(kind)];
      return std::tuple(kind, host != first_host, host, process != first_process, process, id);
    };
    return key(a) < key(b);
  });
}

void DeviceGroupClasses::find_arrangements() {
  const std::size_t kinds = kinds_.size();
  std::vector<int> ranks(kinds);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::vector<int>> orders;
  if (kinds <= 3) {
    do {
      orders.push_back(ranks);
    } while (std::next_permutation(ranks.begin(), ranks.end()));
  } else {
    orders.push_back(ranks);
    std::reverse(ranks.begin(), ranks.end());
    orders.push_back(ranks);
  }
  for (const std::vector<int>& order : orders) arrangements_.push_back({order, false});
  if (kinds == 1 && link_at_.empty()) return;
  for (const std::vector<int>& order : orders) arrangements_.push_back({order, true});
}

void DeviceGroupClasses::find_links() {
  if (cluster_.links.empty() && cluster_.link_classes.empty()) {
    links_.push_back(cluster_.default_link);
    return;
  }
  const std::size_t devices = cluster_.devices.size();
  link_at_.assign(devices * devices, 0);
  std::map<std::pair<Duration, BytesPerSecond>, std::int32_t> known;
  const auto find = [&](const Link& link) {
    const auto [place, is_new] =
        known.try_emplace({link.latency, link.bandwidth}, static_cast<std::int32_t>(known.size()));
    if (is_new) links_.push_back(link);
    return place->second;
  };
  if (cluster_.link_classes.empty()) {
    find(cluster_.default_link);
  } else {
    for (std::size_t from = 0; from < devices; ++from) {
      for (std::size_t to = 0; to < devices; ++to) {
        if (from == to) continue;
        const LinkClass own = cluster_.class_of(DeviceId{from}, DeviceId{to});
        link_at_[from * devices + to] = find(cluster_.usual_link(own));
      }
    }
  }
  for (const DirectedLink& link : cluster_.links) {
    link_at_[link.from.index() * devices + link.to.index()] = find(link.link);
  }
  if (links_.empty()) links_.push_back(cluster_.default_link);  // a single device
  if (links_.size() == 1 && cluster_.links.empty()) link_at_.clear();
}

void DeviceGroupClasses::find_best() {
  best_device_ = kinds_.front();
  for (const Device& kind : kinds_) {
    best_device_.memory_limit = std::max(best_device_.memory_limit, kind.memory_limit);
    best_device_.action_overhead = std::min(best_device_.action_overhead, kind.action_overhead);
    best_device_.step_overhead = std::min(best_device_.step_overhead, kind.step_overhead);
  }
  best_link_ = links_.front();
  for (const Link& link : links_) {
    best_link_.latency = std::min(best_link_.latency, link.latency);
    const bool unlimited = best_link_.bandwidth.count == 0 || link.bandwidth.count == 0;
    best_link_.bandwidth =
        unlimited ? BytesPerSecond{} : std::max(best_link_.bandwidth, link.bandwidth);
  }
}

int DeviceGroupClasses::link_of(DeviceId from, DeviceId to) const {
  if (link_at_.empty()) return 0;
  return link_at_[from.index() * cluster_.devices.size() + to.index()];
}

int DeviceGroupClasses::find_class(std::span<const DeviceId> devices) {
  std::vector<int> key;
  for (const DeviceId device : devices) key.push_back(kind_of_[device.index()]);
  if (!link_at_.empty()) {
    for (const DeviceId from : devices) {
      for (const DeviceId to : devices) {
        if (from != to) key.push_back(link_of(from, to));
      }
    }
  }
  key.push_back(static_cast<int>(devices.size()));
  const auto [known, is_new] =
      class_of_.try_emplace(std::move(key), static_cast<int>(clusters_.size()));
  if (!is_new) return known->second;
  Cluster& like = clusters_.emplace_back();
  like.hosts = cluster_.hosts;
  like.default_link = links_.front();
  for (const DeviceId device : devices) {
    like.devices.push_back(cluster_.devices[device.index()]);
    like.devices.back().process = kUnnamedProcess;  // all groups together have a commit round
  }
  for (std::size_t a = 0; a < devices.size(); ++a) {
    for (std::size_t b = 0; b < devices.size(); ++b) {
      if (a == b || link_of(devices[a], devices[b]) == 0) continue;
      like.links.push_back(
          {DeviceId{a}, DeviceId{b}, links_[index_of(link_of(devices[a], devices[b]))]});
    }
  }
  return known->second;
}

std::span<const DeviceId> DeviceGroupClasses::pick(int count, const Arrangement& arrangement) {
  const std::span<const DeviceId> fastest = std::span(by_speed_).first(index_of(count));
  if (arrangement.rank_of_kind.size() < 2) return fastest;
  std::vector<DeviceId>& picked = dealt_.emplace_back(fastest.begin(), fastest.end());
  std::stable_sort(picked.begin(), picked.end(), [&](DeviceId a, DeviceId b) {
    return arrangement.rank_of_kind[index_of(kind_of_[a.index()])] <
           arrangement.rank_of_kind[index_of(kind_of_[b.index()])];
  });
  return picked;
}

// Brings the devices of each group together, of which stage s of all groups is next to each other.
std::span<const DeviceId> DeviceGroupClasses::gather(const ShapeCell& cell,
                                                     std::span<const DeviceId> across) {
  std::vector<DeviceId>& gathered = dealt_.emplace_back(across.size());
  std::size_t next = 0;
  for (int s = 0; s <= cell.devices; ++s) {
    const int with_one = s < cell.devices ? cell.replicas : cell.longer;
    for (int g = 0; g < with_one; ++g) {
      gathered[index_of(g * cell.devices + std::min(g, cell.longer) + s)] = across[next++];
    }
  }
  return gathered;
}

DeviceGroups DeviceGroupClasses::make_groups(const ShapeCell& cell,
                                             const Arrangement& arrangement) {
  ENSURE(cell.used() <= static_cast<int>(cluster_.devices.size()), "more devices than there are");
  std::span<const DeviceId> devices = pick(cell.used(), arrangement);
  if (arrangement.across) devices = gather(cell, devices);
  DeviceGroups groups(index_of(cell.replicas));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const int length = cell.devices + (static_cast<int>(g) < cell.longer ? 1 : 0);
    groups[g].devices = devices.first(index_of(length));
    devices = devices.subspan(index_of(length));
    const bool as_before =
        g > 0 && groups_are_alike() && groups[g].devices.size() == groups[g - 1].devices.size();
    groups[g].device_class = as_before ? groups[g - 1].device_class : find_class(groups[g].devices);
  }
  return groups;
}

bool DeviceGroupClasses::span_processes(const DeviceGroups& groups) const {
  if (!tells_processes_) return false;
  const Device& first = cluster_.devices[groups.front().devices.front().index()];
  return std::any_of(groups.begin(), groups.end(), [&](const DeviceGroup& group) {
    return std::any_of(group.devices.begin(), group.devices.end(), [&](DeviceId device) {
      return !share_process(first, cluster_.devices[device.index()]);
    });
  });
}

const DeviceGroups& DeviceGroupClasses::groups(const ShapeCell& cell, int arrangement) {
  const Key key{arrangement, cell.devices, cell.replicas, cell.longer};
  const auto known = groups_.find(key);
  if (known != groups_.end()) return known->second;
  return groups_.emplace(key, make_groups(cell, arrangements_[index_of(arrangement)]))
      .first->second;
}

bool DeviceGroupClasses::repeats(const ShapeCell& cell, int arrangement) {
  if (arrangement == 0) return false;
  const DeviceGroups& own = groups(cell, arrangement);
  for (int before = 0; before < arrangement; ++before) {
    const DeviceGroups& other = groups(cell, before);
    const auto same = [](const DeviceGroup& a, const DeviceGroup& b) {
      return std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end());
    };
    if (std::equal(own.begin(), own.end(), other.begin(), other.end(), same)) return true;
  }
  return false;
}

}  // namespace frazil
