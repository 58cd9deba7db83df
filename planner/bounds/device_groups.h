#pragma once
// clang-format off
// Finds the devices of each group, and which groups are alike: those of one device-group class are
// equal in everything but the names of their devices. Devices of one kind have the same speed,
// memory and overheads. An arrangement is an order of the kinds, and a way to deal the devices in
// this order:
//   together   group g takes the next devices: hosts are kept together along a pipeline
//   across     stage s of all groups takes the next devices: every group gets its share of each
//              kind, and equal stages, which reduce with each other, share hosts
// A cluster of equal devices and links has one arrangement, the devices host by host and process by
// process. With more than three kinds only two orders are taken, those by speed, fastest first and
// slowest first. Idle devices are the slowest ones, and among equal ones the last. Where a cluster
// tells of processes, the first devices of a kind are those of its largest process.
// clang-format on

#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "planner/bounds/shape.h"
#include "profiles/cluster.h"

namespace frazil {

struct DeviceGroup {
  // In the order in which the data meets them. Whoever makes the group keeps them.
  std::span<const DeviceId> devices;
  int device_class = 0;  // equal in groups that are alike
};
using DeviceGroups = std::vector<DeviceGroup>;

class DeviceGroupClasses {
 public:
  // Requires: the cluster outlives this. If not `joint` the only arrangement takes the devices as
  // they are listed, together; the last ones are idle.
  DeviceGroupClasses(const Cluster& cluster, bool joint);

  // True if all groups of one length are in the same class.
  bool groups_are_alike() const { return kinds_.size() == 1 && link_at_.empty(); }
  int kinds() const { return static_cast<int>(kinds_.size()); }
  bool links_are_alike() const { return link_at_.empty(); }
  int arrangements() const { return static_cast<int>(arrangements_.size()); }
  // True if an earlier arrangement gives the groups of this cell the same devices.
  bool repeats(const ShapeCell& cell, int arrangement);

  const DeviceGroups& groups(const ShapeCell& cell, int arrangement);
  // True if the devices of the groups lie in more than one process of a cluster that tells of
  // processes. Requires: some group.
  bool span_processes(const DeviceGroups& groups) const;
  // Returns the devices and links of a class as a cluster, the devices numbered from 0.
  const Cluster& cluster(int device_class) const {
    return clusters_[static_cast<std::size_t>(device_class)];
  }

  // Return what bounds may assume of any device and link: a device as fast as the fastest, with the
  // least overheads and the most memory of any (none has to be all of this), and a link with the
  // least latency and the most bandwidth of any.
  const Device& best_device() const { return best_device_; }
  const Link& best_link() const { return best_link_; }

 private:
  struct Arrangement {
    std::vector<int> rank_of_kind;
    bool across = false;
  };
  using Key = std::tuple<int, int, int, int>;

  void find_kinds();
  void sort_by_speed();
  void find_arrangements();
  void find_links();
  void find_best();
  int link_of(DeviceId from, DeviceId to) const;
  int find_class(std::span<const DeviceId> devices);
  std::span<const DeviceId> pick(int count, const Arrangement& arrangement);
  std::span<const DeviceId> gather(const ShapeCell& cell, std::span<const DeviceId> across);
  DeviceGroups make_groups(const ShapeCell& cell, const Arrangement& arrangement);

  const Cluster& cluster_;
  bool tells_processes_ = false;
  std::vector<int> kind_of_;           // by DeviceId
  std::vector<Device> kinds_;          // fastest first
  std::vector<DeviceId> by_speed_;     // by kind, host, id
  std::vector<Link> links_;            // all that differ; the usual one first
  std::vector<std::int32_t> link_at_;  // by (from, to); empty where all are the usual one
  std::vector<Arrangement> arrangements_;
  std::deque<std::vector<DeviceId>> dealt_;  // the devices of groups in another order
  std::map<Key, DeviceGroups> groups_;
  std::map<std::vector<int>, int> class_of_;  // by kinds and links
  std::deque<Cluster> clusters_;              // references to them stay valid
  Device best_device_;
  Link best_link_;
};

}  // namespace frazil
