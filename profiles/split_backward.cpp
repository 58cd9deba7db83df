#include "profiles/split_backward.h"

#include <algorithm>
#include <optional>

#include "profiles/error.h"

namespace frazil {
namespace {

using Neighbours = std::vector<std::vector<std::size_t>>;  // by layer

// Returns the nearest layer with a backward along the neighbours; of equally near ones, the one
// that the walk meets first.
std::optional<std::size_t> find_along(const Neighbours& neighbours, const GradientFlow& flow,
                                      std::size_t start) {
  std::vector<bool> seen(flow.layers.size());
  std::vector<std::size_t> queue{start};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    if (flow.layers[queue[next]].any()) return queue[next];
    for (const std::size_t layer : neighbours[queue[next]]) {
      if (!seen[layer]) queue.push_back(layer);
      seen[layer] = true;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> find_by_place(const GradientFlow& flow, std::size_t start) {
  const std::size_t count = flow.layers.size();
  for (std::size_t layer = start; layer < count; ++layer) {
    if (flow.layers[layer].any()) return layer;
  }
  for (std::size_t layer = start; layer > 0; --layer) {
    if (flow.layers[layer - 1].any()) return layer - 1;
  }
  return std::nullopt;
}

void add_backwards(const Layer& from, Layer& to) {
  ENSURE(from.costs.size() == to.costs.size(), "layers have samples of equal sizes");
  for (std::size_t i = 0; i < from.costs.size(); ++i) {
    Duration& sum = to.costs[i].backward_input;
    sum = std::min(sum + from.costs[i].backward_input, Duration{kLargestQuantity + 1});
  }
}

Duration sum_backwards(const Layer& layer) {
  Duration sum{0};
  for (const CostSample& cost : layer.costs) {
    sum = std::min(sum + cost.backward_input, Duration{kLargestQuantity});
  }
  return sum;
}

// Moves the backwards of layers that compute no gradient.
MovedBackward move_backwards(ModelProfile& profile, const GradientFlow& flow) {
  Neighbours readers(profile.layers.size());
  Neighbours read(profile.layers.size());
  for (const Edge& edge : profile.edges) {
    readers[edge.from.index()].push_back(edge.to.index());
    read[edge.to.index()].push_back(edge.from.index());
  }
  MovedBackward result;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    const Duration whole = sum_backwards(profile.layers[l]);
    if (flow.layers[l].any() || whole == Duration{0}) continue;
    std::optional<std::size_t> target = find_along(readers, flow, l);
    if (!target) target = find_along(read, flow, l);
    if (!target) target = find_by_place(flow, l);
    Duration& sum = target ? result.moved : result.lost;
    sum = std::min(sum + whole, Duration{kLargestQuantity});
    if (!target) continue;
    add_backwards(profile.layers[l], profile.layers[*target]);
    for (CostSample& cost : profile.layers[l].costs) cost.backward_input = Duration{0};
  }
  return result;
}

}  // namespace

void split_backward(Duration whole, const Layer& layer, const LayerGradients& gradients,
                    CostSample& cost) {
  if (gradients.input && gradients.weight) {
    cost.backward_input = whole / 2;
  } else {
    const bool is_weight = gradients.weight || (!gradients.input && layer.trainable() > Bytes{0});
    cost.backward_input = is_weight ? Duration{0} : whole;
  }
  cost.backward_weight = cost.backward_weight_alone = whole - cost.backward_input;
}

MovedBackward split_whole_backwards(ModelProfile& profile) {
  const GradientFlow flow = find_unfrozen_flow(profile);
  const MovedBackward moved = move_backwards(profile, flow);
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    Layer& layer = profile.layers[l];
    for (CostSample& cost : layer.costs) {
      split_backward(cost.backward_input, layer, flow.layers[l], cost);
    }
  }
  profile.backward_was_split_by_rule = true;
  return moved;
}

}  // namespace frazil
