#pragma once
// What a value of a model file needs of the nodes before it.

#include <set>
#include <string>
#include <vector>

#include "exec/models/imported/imported_graph.h"

namespace frazil {

// Part of the nodes of a layer or a loss.
struct NeededNodes {
  std::vector<ImportedNode> nodes;  // in their order
  std::set<std::string> given;      // the values that they read and none of them makes
};

// Returns the nodes that make `value`. A value that no node makes is given: no node is needed.
NeededNodes find_needed_nodes(const std::vector<ImportedNode>& nodes, const std::string& value);

}  // namespace frazil
