#pragma once
// Which operations of a layer its parameters enter, so that W can be cut off there.

#include <cstddef>
#include <vector>

#include "exec/models/imported/resolved_node.h"

namespace frazil {

// An operation that joins values which depend on parameters alone (a weight, its transpose, the
// rows of a table of positions) with others. Behind its output, only the gradients of these
// parameters are left to compute.
struct ParameterJoin {
  std::size_t node = 0;                 // index
  std::size_t output = 0;               // slot
  std::vector<std::size_t> parameters;  // indices in the layer
  bool stays = true;                    // no later node writes into the output
};

struct ParameterFlow {
  std::vector<ParameterJoin> joins;  // in the order of nodes
  // True if each parameter enters one join, by gradient, and no two joins share memory that is
  // written.
  bool has_seams = false;
};

// What a value is at the beginning of a layer.
enum class Origin : std::uint8_t { kFixed, kParameter, kInput };

// `origins`: by slot, of all values that no node makes; parameters are numbered as they come.
// `outputs`: slots that leave the layer.
ParameterFlow find_flow(const std::vector<ResolvedNode>& nodes, const std::vector<Origin>& origins,
                        std::size_t slots, const std::vector<std::size_t>& outputs);

// Returns for each slot the first of the slots that it may share memory with.
std::vector<std::size_t> find_shared_memory(const std::vector<ResolvedNode>& nodes,
                                            std::size_t slots);

}  // namespace frazil
