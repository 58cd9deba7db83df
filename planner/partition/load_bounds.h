#pragma once
// Lower bounds on the largest load of any split of a part graph, from sums alone.

#include <vector>

#include "planner/partition/part_graph.h"

namespace frazil {

// The most work of devices that hosts can take over, by the fractional relaxation of the knapsack
// problem: parts in the order of device time saved per host time, the last part in part.
class HostRelief {
 public:
  explicit HostRelief(const PartGraph& graph);
  // Returns the device time that so many hosts save when each is busy for `host_time`; no hosts
  // save nothing.
  WorkTime saved(WorkTime host_time, int hosts) const;

 private:
  struct Point {
    WorkTime host_time{0};
    WorkTime saved{0};
  };
  std::vector<Point> points_;  // sums over the parts so far, ascending
};

// Returns the least time in which some devices and hosts can do this much work of devices.
WorkTime time_to_do(WorkTime work, const HostRelief& relief, int devices, int hosts);

// Returns the device time of all parts that a device may hold.
WorkTime total_load(const PartGraph& graph);

// Returns the larger of two bounds: an even share of the work that hosts leave over, and the time
// of the part that takes longest where it takes least. WorkTime::max() if a part runs nowhere.
WorkTime bound_load(const PartGraph& graph, const HostRelief& relief, int devices, int hosts);

}  // namespace frazil
