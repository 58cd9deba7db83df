#pragma once
// The exact all-reduce of a group of layers that have the same owners. The owners divide the
// elements into ranges. Each sends every other owner that owner's range of its maximal tree nodes
// (maximal_nodes in sim/gradient_tree_shape.h), completes the tree on its own range, and then all
// gather. Addition is element-wise, so the division changes no bit. The traffic is that of a ring
// all-reduce where each owner has one node of the tree.

#include <vector>

#include "exec/communication/communicator.h"
#include "exec/measuring/reduction_meter.h"
#include "exec/program/step_program.h"
#include "exec/reduction/gradient_tree.h"

namespace frazil {

// Elements [first, first + count) of the flattened tensor `tensor` of a group.
struct TensorSlice {
  std::size_t tensor = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// Returns share `part` of `parts` of tensors with these element counts. Shares are contiguous,
// equal up to rounding, and together cover every element once.
std::vector<TensorSlice> share_of(const std::vector<std::int64_t>& elements, std::size_t part,
                                  std::size_t parts);

// Returns the complete sums of a group. `nodes`: this owner's maximal nodes, each with the group's
// tensors (none for an owner without micro-batches); nobody may write to these tensors afterwards.
// `like`: tensors with the group's shapes, type and device. `tag.kind` is overwritten. All owners
// must call it, with equal shapes, `owners`, `micro_batches` and `tag`. After each message
// `tell_held` is told how many bytes of these gradients the device holds, its own and those that
// came (planner/lowering/reduction_memory.h).
Tensors reduce_exactly(std::vector<std::pair<TreeNode, Tensors>> nodes, const Tensors& like,
                       const std::vector<LayerOwner>& owners, int micro_batches,
                       Communicator& communicator, Tag tag, const TellHeld& tell_held = {});

}  // namespace frazil
