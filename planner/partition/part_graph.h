#pragma once
// A part graph holds what a contiguous split can tell apart in a work graph. Parts are what must
// lie on one device: the forward and backward nodes of a colour class, and classes that reach each
// other. Parts are in the order of the forward nodes; a class of backward nodes alone stands where
// its backward edges, turned round, put it (Tarnawski et al., NeurIPS 2020, appendix B). Transfers
// are nets: the output of a node with all its readers. A device that holds some but not all of a
// net's parts pays the net's transfer once. So the load of a device is its parts' loads plus the
// nets that it cuts.

#include <cstddef>
#include <vector>

#include "profiles/work_graph.h"

namespace frazil {

struct Part {
  WorkTime load{0};
  WorkTime host_load{0};
  Bytes memory;
  bool runs_on_device = true;
  std::vector<std::size_t> nodes;   // of the work graph, ascending
  std::vector<std::size_t> before;  // parts that no later device may hold
  std::vector<std::size_t> after;   // parts that no earlier device may hold
};

struct Net {
  WorkTime transfer{0};            // > 0
  std::vector<std::size_t> parts;  // at least two, ascending

  friend auto operator<=>(const Net&, const Net&) = default;
};

struct PartGraph {
  std::vector<Part> parts;  // topological order
  std::vector<Net> nets;    // no two over the same parts
};

// Makes the part graph of a work graph.
PartGraph contract(const WorkGraph& graph);

// Returns the graph with each part that costs nothing merged into a neighbour that is never a worse
// place for the part, because it lies in all the part's nets. This is the only part before or after
// it; or, if nothing precedes it, the first of the parts after it, if that one precedes the others;
// or, if nothing follows it, the last of the parts before it, if the others precede that one. The
// best largest load stays the same: parts that need memory are merged only if all parts together
// fit one device.
PartGraph merge_free_parts(const PartGraph& graph, Bytes device_memory);

}  // namespace frazil
