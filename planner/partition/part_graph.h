#pragma once
// What a contiguous split can tell apart in a work graph. Parts are what must lie on one device:
// the forward and backward nodes of a colour class, and classes that reach each other. Between
// parts stands the order of the forward nodes; a class of backward nodes alone stands where its
// backward edges, turned round, put it (Tarnawski et al., NeurIPS 2020, appendix B). Transfers are
// nets: the output of a node with all its readers; a device that holds some but not all of a net's
// parts pays the net's transfer once. So the load of a device is its parts' loads plus the nets it
// cuts.

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
  std::vector<std::size_t> after;   // and no earlier one
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

PartGraph contract(const WorkGraph& graph);

// The same with parts that cost nothing merged into a neighbour that is never a worse place for
// them, because it lies in all their nets: the only one before or after them; the first of those
// after one that nothing precedes, where it precedes the others; the last of those before one that
// nothing follows, where the others precede it. The best largest load stays: parts that need memory
// are merged only where all parts together fit one device.
PartGraph merge_free_parts(const PartGraph& graph, Bytes device_memory);

}  // namespace frazil
