#include "exec/reduction/gradient_reduction.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "exec/tensors/tensor_bytes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Tensors cut(const Tensors& tensors, const std::vector<TensorSlice>& slices) {
  // The slices are plain: autograd's notes on views would tie the pieces of one thread to tensors
  // of another.
  const at::AutoDispatchBelowADInplaceOrView no_view_notes;
  Tensors pieces;
  pieces.reserve(slices.size());
  for (const TensorSlice& slice : slices) {
    pieces.push_back(
        tensors[slice.tensor].contiguous().view(-1).narrow(0, slice.first, slice.count));
  }
  return pieces;
}

void paste(const Tensors& pieces, const std::vector<TensorSlice>& slices, const Tensors& into) {
  ENSURE(pieces.size() == slices.size(), "one piece per slice");
  for (std::size_t i = 0; i < slices.size(); ++i) {
    into[slices[i].tensor].view(-1).narrow(0, slices[i].first, slices[i].count).copy_(pieces[i]);
  }
}

// Copies pieces to which nothing was added: each would keep alive the whole node that it was cut
// from.
Tensors keep_alone(Tensors pieces) {
  for (at::Tensor& piece : pieces) {
    if (piece.storage().nbytes() > piece.nbytes()) piece = piece.clone();
  }
  return pieces;
}

// Nodes travel as one flat list, node by node; the receiver knows which nodes from the plan.
Tensors pack(const std::vector<std::pair<TreeNode, Tensors>>& nodes,
             const std::vector<TensorSlice>& slices) {
  Tensors packed;
  for (const auto& [node, sums] : nodes) {
    for (at::Tensor& piece : cut(sums, slices)) packed.push_back(std::move(piece));
  }
  return packed;
}

std::size_t find_self(const std::vector<LayerOwner>& owners, int rank) {
  const auto self = std::find_if(owners.begin(), owners.end(), [&](const LayerOwner& owner) {
    return owner.device.value == rank;
  });
  ENSURE(self != owners.end(), "an owner takes part in its layers' reduction");
  return static_cast<std::size_t>(self - owners.begin());
}

}  // namespace

std::vector<TensorSlice> share_of(const std::vector<std::int64_t>& elements, std::size_t part,
                                  std::size_t parts) {
  const std::int64_t total = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
  const auto boundary = [&](std::size_t k) {
    return total / static_cast<std::int64_t>(parts) * static_cast<std::int64_t>(k) +
           total % static_cast<std::int64_t>(parts) * static_cast<std::int64_t>(k) /
               static_cast<std::int64_t>(parts);
  };
  const std::int64_t first = boundary(part);
  const std::int64_t end = boundary(part + 1);
  std::vector<TensorSlice> slices;
  std::int64_t offset = 0;
  for (std::size_t t = 0; t < elements.size(); ++t) {
    const std::int64_t from = std::max(first, offset);
    const std::int64_t to = std::min(end, offset + elements[t]);
    if (from < to) slices.push_back({t, from - offset, to - from});
    offset += elements[t];
  }
  return slices;
}

Tensors reduce_exactly(std::vector<std::pair<TreeNode, Tensors>> nodes, const Tensors& like,
                       const std::vector<LayerOwner>& owners, int micro_batches,
                       Communicator& communicator, Tag tag, const TellHeld& tell_held) {
  const c10::NoGradGuard no_grad;
  const std::size_t self = find_self(owners, communicator.rank());
  std::vector<std::int64_t> elements;
  elements.reserve(like.size());
  for (const at::Tensor& tensor : like) elements.push_back(tensor.numel());

  tag.kind = MessageKind::kGradientNodes;
  for (std::size_t o = 0; o < owners.size(); ++o) {
    if (o == self) continue;
    communicator.send(owners[o].device.value, tag,
                      pack(nodes, share_of(elements, o, owners.size())));
  }
  const std::vector<TensorSlice> own_share = share_of(elements, self, owners.size());
  std::int64_t own_bytes = 0;
  GradientTree tree(micro_batches);
  for (const auto& [node, sums] : nodes) {
    own_bytes += count_bytes(sums);
    tree.add_shared(node, cut(sums, own_share));
  }
  for (std::size_t o = 0; o < owners.size(); ++o) {
    if (o == self) continue;
    Tensors packed = communicator.receive(owners[o].device.value, tag);
    if (tell_held) tell_held(own_bytes + tree.count_bytes_beside(nodes) + count_bytes(packed));
    auto next = packed.begin();
    for (const TreeNode& node : maximal_nodes(owners[o].micro_batches, micro_batches)) {
      const auto end = next + static_cast<std::ptrdiff_t>(own_share.size());
      tree.add_shared(node, Tensors(std::make_move_iterator(next), std::make_move_iterator(end)));
      next = end;
    }
  }
  const Tensors own_sum = keep_alone(tree.take_root());
  nodes.clear();

  tag.kind = MessageKind::kGradientSum;
  for (std::size_t o = 0; o < owners.size(); ++o) {
    if (o != self) communicator.send(owners[o].device.value, tag, own_sum);
  }
  Tensors complete;
  complete.reserve(like.size());
  for (const at::Tensor& tensor : like) {
    complete.push_back(at::empty(tensor.sizes(), tensor.options()));
  }
  paste(own_sum, own_share, complete);
  for (std::size_t o = 0; o < owners.size(); ++o) {
    if (o == self) continue;
    const Tensors sum = communicator.receive(owners[o].device.value, tag);
    if (tell_held) tell_held(count_bytes(own_sum) + count_bytes(complete) + count_bytes(sum));
    paste(sum, share_of(elements, o, owners.size()), complete);
  }
  return complete;
}

}  // namespace frazil
