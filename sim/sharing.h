#pragma once
// What tasks draw on while they run, beside their lanes, and how much of it there is. The physical
// model is small:
//   Transfer    at most its link's bandwidth, on: the sender's way out, the receiver's way in, the
//               ways out and in of their hosts where these differ, and the link itself where that
//               is slower than both ways
//   Collective  the bytes of its busiest device spread evenly over its time, on both ways of all
//               its devices, and of their hosts where there are several
//   Compute     (or a pair) one core, on the cores of the device's host
//   Fixed, Hop  nothing
// A work that gets less than it draws alone takes longer in proportion: at rate r of d it takes
// d / r of its price. Unlimited resources (0, or beyond the end of a list) are left out.

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/cluster.h"
#include "sim/fair_shares.h"
#include "sim/task_graph.h"

namespace frazil {

struct Sharing {
  // The resources of a work, `rate` on each of them, are drawn_on[first], count of them; with rate
  // or count 0 its price holds whatever else runs.
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

// Every device sends and receives at the bandwidth of its fastest link; hosts are unlimited.
Capacities find_capacities(const Cluster& cluster);
// Requires: devices and hosts named in the graph and the cluster exist.
Sharing share(const TaskGraph& graph, const Cluster& cluster, const Capacities& capacities);

// Tasks that start together, when each of them could, and end together. They are one flow, which
// draws what the first of them does; the longest price counts.
using Meeting = std::vector<TaskId>;

// One for each time that a collective work is entered: its n-th task on every device of it.
// Requires: equally many on each.
std::vector<Meeting> find_meetings(const TaskGraph& graph);

}  // namespace frazil
