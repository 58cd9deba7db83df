#pragma once
// Which devices a group takes, and which groups are alike. Devices of one kind have the same speed,
// memory and overheads. An arrangement is an order of the kinds, and whether the devices of a group
// lie together or those of a stage do:
//   together   group g takes the next devices in the order: hosts are kept together along a
//   pipeline across     stage s of all groups takes the next devices: every group gets its share of
//   each
//              kind, and equal stages, which reduce with each other, share hosts
// A cluster of equal devices and links has one arrangement, the devices as they are listed. Of more
// than three kinds the orders by speed, both ways, are taken.
// Where some devices stay idle they are the slowest, of equal ones the last.

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "planner/bounds/shape.h"
#include "profiles/cluster.h"

namespace frazil {

struct DeviceGroup {
  std::vector<DeviceId> devices;  // in the order in which the data meets them
  int machine = 0;
};
// By group.
using DeviceGroups = std::vector<DeviceGroup>;

class DeviceGroupClasses {
 public:
  // The cluster must outlive this. Not joint: the devices as they are listed, together, alone.
  DeviceGroupClasses(const Cluster& cluster, bool joint);

  // Whether groups of one length are all the same machine.
  bool groups_are_alike() const { return kinds_.size() == 1 && link_at_.empty(); }
  int arrangements() const { return static_cast<int>(arrangements_.size()); }
  // Where nothing distinguishes this arrangement from an earlier one for a cell.
  bool repeats(const ShapeCell& cell, int arrangement);

  const DeviceGroups& groups(const ShapeCell& cell, int arrangement);
  // The cluster that a group is, its devices numbered from 0: groups that are alike have the same.
  const Cluster& machine(int id) const { return machines_[static_cast<std::size_t>(id)]; }

  // Over the whole cluster: the fastest device with the least overheads and the most memory, which
  // no device has to be, and the best link. For bounds.
  const Device& best_device() const { return best_device_; }
  const Link& best_link() const { return best_link_; }

 private:
  struct Arrangement {
    std::vector<int> rank_of_kind;
    bool across = false;
  };
  using Key = std::tuple<int, int, int, int>;

  void find_kinds();
  void find_arrangements();
  void find_links();
  void find_best();
  int link_of(DeviceId from, DeviceId to) const;
  int find_machine(const std::vector<DeviceId>& devices);
  std::vector<DeviceId> pick(int count, const Arrangement& arrangement) const;
  DeviceGroups make_groups(const ShapeCell& cell, const Arrangement& arrangement);

  const Cluster& cluster_;
  std::vector<int> kind_of_;           // by DeviceId
  std::vector<Device> kinds_;          // fastest first
  std::vector<DeviceId> by_speed_;     // kind, host, id
  std::vector<Link> links_;            // all that differ; the default first
  std::vector<std::int32_t> link_at_;  // by (from, to); empty where all are the default
  std::vector<Arrangement> arrangements_;
  std::map<Key, DeviceGroups> groups_;
  std::map<std::vector<int>, int> machine_of_;  // by kinds and links
  std::deque<Cluster> machines_;                // references to them stay valid
  Device best_device_;
  Link best_link_;
};

}  // namespace frazil
