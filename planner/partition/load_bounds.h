#pragma once
// What no split of a part graph can go below, from sums alone.

#include <vector>

#include "planner/partition/part_graph.h"

namespace frazil {

// The most work of devices that hosts can take over, by the fractional relaxation of the knapsack:
// parts by device time saved per host time, the last one in part.
class HostAdvice {
 public:
  explicit HostAdvice(const PartGraph& graph);
  // By so many hosts that are each busy for this long; none saves nothing.
  WorkTime saved(WorkTime host_time, int hosts) const;

 private:
  struct Point {
    WorkTime host_time{0};
    WorkTime saved{0};
  };
  std::vector<Point> points_;  // sums over the parts so far, ascending
};

// The least time in which some devices and hosts can do this much work of devices.
WorkTime time_to_do(WorkTime work, const HostAdvice& advice, int devices, int hosts);

// Device time of all parts that a device may hold.
WorkTime total_load(const PartGraph& graph);

// The largest of: an even share of the work that hosts leave over; the part that takes longest
// where it takes least. WorkTime::max() when a part runs nowhere.
WorkTime bound_load(const PartGraph& graph, const HostAdvice& advice, int devices, int hosts);

}  // namespace frazil
