#pragma once
// Finds splits of a part graph along the ideals of one family: one with no load above a limit, and
// the best one.
//
// A question is answered breadth first over the number of devices: from each ideal that can be done
// with d devices, all larger ideals whose difference is a legal stage can be done with d + 1. Each
// ideal is left once for each number of hosts, so a split that is found uses the fewest devices.
// The search cuts off stages whose work, with the transfers that stay whatever follows, is above
// the limit, and ideals that leave more work than the remaining devices and hosts can do within the
// limit. The best load is bracketed: a refusal names the smallest load that was turned down, below
// which no limit changes the answer.

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/ideals.h"
#include "planner/partition/load_bounds.h"
#include "planner/partition/part_graph.h"

namespace frazil {

// The devices, which are alike, and the hosts that a graph is split over.
struct SplitDevices {
  int devices = 1;
  int hosts = 0;
  Bytes device_memory;
};

struct SplitStage {
  std::vector<std::size_t> parts;
  bool is_host = false;
  WorkTime work{0};
  WorkTime transfer{0};
  Bytes memory;

  WorkTime load() const { return work + transfer; }
  friend bool operator==(const SplitStage&, const SplitStage&) = default;
};

struct Split {
  std::vector<SplitStage> stages;  // in the order of the ideals
  WorkTime load{0};                // of the most loaded stage

  friend bool operator==(const Split&, const Split&) = default;
};

struct BestSplit {
  std::optional<Split> split;  // if is_finished, the best of the family
  WorkTime lower_bound{0};     // of every split of the family; WorkTime::max(): there is none
  bool is_finished = true;     // false: the states were spent first
};

// Returns the best split whose load is at least `floor`, a lower bound, and below `ceiling`. Takes
// what it needs of `states`, the number of stages that may be looked at.
BestSplit find_best_split(const PartGraph& graph, const IdealLattice& lattice,
                          const SplitDevices& machines, WorkTime floor, WorkTime ceiling,
                          std::int64_t& states);

// Returns a split with no load above `limit` that uses the fewest devices; none if there is none,
// or if the states are spent first.
std::optional<Split> find_split(const PartGraph& graph, const IdealLattice& lattice,
                                const SplitDevices& machines, WorkTime limit, std::int64_t& states);

}  // namespace frazil
