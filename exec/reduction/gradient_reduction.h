#pragma once
// The exact all-reduce of a group of layers that have the same owners. Owners share the work by
// element ranges: each ships its maximal tree nodes' share to each other owner, completes the tree
// on its own share, then all gather. Addition is element-wise, so sharing changes no bit. For equal
// aligned owners the traffic is a ring all-reduce's.

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

// Share `part` of `parts` of tensors with the given element counts: contiguous, equal up to
// rounding, together everything once.
std::vector<TensorSlice> share_of(const std::vector<std::int64_t>& elements, std::size_t part,
                                  std::size_t parts);

// `nodes`: this owner's maximal nodes over the group's tensors (none for an owner without
// micro-batches); `like`: tensors with the group's shapes. `tag.kind` is overwritten. Returns the
// complete sums. All owners call it with equal arguments but nodes. What comes from another device
// counts as held (planner/lowering/reduction_memory.h).
Tensors reduce_exactly(std::vector<std::pair<TreeNode, Tensors>> nodes, const Tensors& like,
                       const std::vector<LayerOwner>& owners, int micro_batches,
                       Communicator& communicator, Tag tag, const TellHeld& tell_held = {});

}  // namespace frazil
