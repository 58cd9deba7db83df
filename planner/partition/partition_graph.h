#pragma once
// Finds the contiguous split of a work graph whose most loaded device has the least load, over at
// most the given devices (Tarnawski et al., NeurIPS 2020, section 5: max-load). The split is
// optimal if all ideals can be listed (planner/partition/ideals.h) and the search
// (planner/partition/split_search.h) ends within its states. Else it is the best split found among
// the ideals near the beginnings of a few orders, where each round takes the best split for the
// next order, and a lower bound stands beside it. Limits count ideals and looked-at stages, never
// time: equal input gives equal bytes. A split is never worse than one for fewer devices: where
// optimality cannot be proved fewer devices are tried as well.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/partition/split_search.h"
#include "profiles/work_graph.h"

namespace frazil {

struct SplitLimits {
  std::size_t ideals = 100'000;
  std::int64_t states = 50'000'000;  // stages looked at, for each number of devices asked
};

enum class IdleReason {
  kNone,               // no device is idle
  kNoPartLeft,         // each part has a device of its own
  kDeviceMemory,       // host cores hold nothing but parts that no device has the memory for
  kPartAlone,          // the most loaded device holds one part
  kTransfersCostMore,  // every further cut costs more transfer than it saves
  kNotProven,          // the search ended first
};

struct GraphStage {
  std::vector<std::size_t> nodes;  // of the work graph, ascending
  bool is_host = false;
  WorkTime work{0};
  WorkTime transfer{0};
  Bytes memory;

  WorkTime load() const { return work + transfer; }
};

struct GraphPartition {
  std::vector<GraphStage> stages;  // in the order of the graph
  WorkTime load{0};                // of the most loaded
  WorkTime lower_bound{0};         // of every split; equal to the load: this one is optimal
  int idle_devices = 0;
  IdleReason idle_reason = IdleReason::kNone;
  std::size_t parts = 0;  // that must stay whole
  std::size_t ideals = 0;
  bool has_all_ideals = true;
  std::int64_t states = 0;  // stages looked at

  bool is_optimal() const { return load == lower_bound; }
};

// Returns the best split found. Throws InfeasibleError if no split fits in memory, or none was
// found.
GraphPartition partition_graph(const WorkGraph& graph, const SplitLimits& limits);

// Returns "every further cut costs more transfer than it saves" and the like.
std::string to_sentence(IdleReason reason);

}  // namespace frazil
