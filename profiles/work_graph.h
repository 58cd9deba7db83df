#pragma once
// A WorkGraph is work to be placed on devices, as Tarnawski et al. state it ("Efficient Algorithms
// for Device Placement of DNN Graph Operators", NeurIPS 2020, section 3). It has nodes with a time
// on a device and on a host core, and edges whose crossing between devices costs both ends a
// transfer through host memory. A training graph holds forward and backward nodes.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// Femtoseconds (10^-12 ms) are fine enough for the transfers of single bytes that such files hold.
using WorkTime = std::chrono::duration<std::int64_t, std::femto>;

// The largest sum of all times of a graph, each transfer counted twice.
inline constexpr WorkTime kLongestWork{std::int64_t{1} << 62};

struct WorkNode {
  std::int64_t id = 0;  // as its file calls it
  std::string name;
  WorkTime load{0};                                   // on a device
  WorkTime host_load{0};                              // on a host core
  Bytes memory = {};                                  // on a device; a host core has enough
  std::optional<std::int64_t> colour = std::nullopt;  // nodes of one colour class stay together
  bool is_backward = false;
  bool runs_on_device = true;

  friend bool operator==(const WorkNode&, const WorkNode&) = default;
};

// `to` reads what `from` made. All edges that leave a node cost the same: what is sent is its
// output.
struct WorkEdge {
  std::size_t from = 0;  // indices into the nodes
  std::size_t to = 0;
  WorkTime transfer{0};

  friend bool operator==(const WorkEdge&, const WorkEdge&) = default;
};

struct WorkGraph {
  std::vector<WorkNode> nodes;  // in the order of their file
  std::vector<WorkEdge> edges;  // without cycles, none from a backward to a forward node
  int devices = 1;
  int hosts = 0;  // host cores that may hold nodes; they pay no transfers
  Bytes device_memory = {};

  friend bool operator==(const WorkGraph&, const WorkGraph&) = default;
};

}  // namespace frazil
