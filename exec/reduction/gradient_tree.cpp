#include "exec/reduction/gradient_tree.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "exec/tensors/tensor_bytes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Adds in place only if `left` is alone on its storage: autograd may hand out one tensor as the
// gradient of two parameters, and peers may still be reading what was shipped to them.
at::Tensor add_into(at::Tensor& left, const at::Tensor& right) {
  if (left.use_count() == 1 && left.storage().use_count() == 1) {
    left.add_(right);
    return std::move(left);
  }
  return at::add(left, right);
}

}  // namespace

void GradientTree::add(TreeNode node, Tensors sum) { merge(node, std::move(sum), false); }

void GradientTree::add_shared(TreeNode node, Tensors sum) { merge(node, std::move(sum), true); }

void GradientTree::merge(TreeNode node, Tensors sum, bool is_shared) {
  const c10::NoGradGuard no_grad;
  ENSURE(is_tree_node(node, micro_batches_), "a subtree of the gradient tree");
  for (;;) {
    const std::optional<TreeNode> other = sibling(node, micro_batches_);
    const auto found = other ? nodes_.find(*other) : nodes_.end();
    if (found == nodes_.end()) break;
    Tensors other_sum = std::move(found->second);
    nodes_.erase(found);
    const bool other_is_shared = shared_.erase(*other) > 0;
    const bool is_left = node < *other;
    Tensors& left = is_left ? sum : other_sum;
    Tensors& right = is_left ? other_sum : sum;
    const bool may_write = is_left ? !is_shared : !other_is_shared;
    ENSURE(left.size() == right.size(), "equal groups of gradients");
    Tensors merged;
    merged.reserve(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      merged.push_back(may_write ? add_into(left[i], right[i]) : at::add(left[i], right[i]));
      left[i].reset();
      right[i].reset();
    }
    sum = std::move(merged);
    node = *parent(node, micro_batches_);
    is_shared = false;
  }
  if (is_shared) shared_.insert(node);
  ENSURE(nodes_.emplace(node, std::move(sum)).second, "each subtree comes once");
}

std::int64_t GradientTree::count_bytes_beside(
    const std::vector<std::pair<TreeNode, Tensors>>& nodes) const {
  std::int64_t bytes = 0;
  for (const auto& [node, sum] : nodes_) {
    const auto is_this = [&wanted = node](const auto& held) { return held.first == wanted; };
    if (std::none_of(nodes.begin(), nodes.end(), is_this)) bytes += count_bytes(sum);
  }
  return bytes;
}

std::vector<std::pair<TreeNode, Tensors>> GradientTree::take_nodes() {
  std::vector<std::pair<TreeNode, Tensors>> nodes;
  nodes.reserve(nodes_.size());
  for (auto& [node, sum] : nodes_) nodes.emplace_back(node, std::move(sum));
  nodes_.clear();
  shared_.clear();
  return nodes;
}

Tensors GradientTree::take_folded() {
  const c10::NoGradGuard no_grad;
  std::vector<std::pair<TreeNode, Tensors>> nodes = take_nodes();
  ENSURE(!nodes.empty(), "some micro-batch has been added");
  Tensors sum = std::move(nodes.back().second);
  for (auto node = std::next(nodes.rbegin()); node != nodes.rend(); ++node) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = add_into(node->second[i], sum[i]);
  }
  return sum;
}

Tensors GradientTree::take_root() {
  ENSURE(nodes_.size() == 1 && nodes_.begin()->first == (TreeNode{0, micro_batches_}),
         "all micro-batches have been added");
  Tensors sum = std::move(nodes_.begin()->second);
  nodes_.clear();
  shared_.clear();
  return sum;
}

}  // namespace frazil
