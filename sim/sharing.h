#pragma once
// clang-format off
// The resources that tasks draw on while they run, beside their lanes, and the capacity of each.
// The physical model is small:
//   Transfer    at most its link's bandwidth, on: the sender's way out, the receiver's way in, the
//               ways out and in of their hosts where these differ, and the link itself where that
//               is slower than both ways
//   Collective  the bytes of its busiest device spread evenly over its time, on both ways of all
//               its devices, and of their hosts where there are several
//   Compute     (or a pair) one core, on the cores of the device's host
//   Fixed, Hop  nothing
// A work that gets less than it draws alone takes longer in proportion: at rate r of d it takes
// d / r of its price. Unlimited resources (0, or beyond the end of a list) are left out.
// clang-format on

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/cluster.h"
#include "sim/fair_shares.h"
#include "sim/task_graph.h"

namespace frazil {

struct Sharing {
  // A work draws at `rate` on each of its `count` resources, which begin at drawn_on[first]. With
  // rate or count 0 the work's price holds whatever else runs.
  struct Draw {
    std::int64_t rate = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  std::vector<std::int64_t> capacities;  // by ResourceId, in the unit of the rates drawn on it
  std::vector<Draw> draws;               // by WorkId; works beyond the end draw on nothing
  std::vector<ResourceId> drawn_on;

  ResourceId add_resource(std::int64_t capacity);
  void draw(WorkId work, std::int64_t rate, std::span<const ResourceId> resources);
  bool is_shared(WorkId work) const { return work < draws.size() && draws[work].count > 0; }
  std::span<const ResourceId> resources_of(WorkId work) const {
    return std::span(drawn_on).subspan(draws[work].first, draws[work].count);
  }
};

struct Capacities {
  std::vector<BytesPerSecond> out;  // by device
  std::vector<BytesPerSecond> in;
  std::vector<BytesPerSecond> host_out;  // by host
  std::vector<BytesPerSecond> host_in;
  std::vector<int> cores;  // by host
};

// Returns the capacities of a cluster: every device sends and receives at the bandwidth of its
// fastest link; hosts are unlimited.
Capacities find_capacities(const Cluster& cluster);
// Finds what each work of a graph draws on. Requires: devices and hosts named in the graph and the
// cluster exist.
Sharing share(const TaskGraph& graph, const Cluster& cluster, const Capacities& capacities);

// Tasks that start together, as soon as each could start, and end together. A meeting is one flow,
// which draws what its first task draws and takes the longest price of its tasks.
using Meeting = std::vector<TaskId>;

// Returns a meeting for each time that a collective work of two or more devices is entered: the
// work's n-th task on every device. Requires: the work has equally many tasks on each device.
std::vector<Meeting> find_meetings(const TaskGraph& graph);

}  // namespace frazil
