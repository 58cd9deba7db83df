#include "exec/cache/prefix_boundary.h"

#include <ATen/core/Tensor.h>

#include <set>

#include "profiles/error.h"

namespace frazil {

std::vector<LayerOutput> find_boundary(const ModelSpec& model, int depth) {
  std::set<LayerOutput> crossing;
  for (const ModelEdge& edge : model.edges) {
    if (edge.from.value >= depth || edge.to.value < depth) continue;
    for (const std::size_t output : edge.outputs) crossing.insert({edge.from, output});
  }
  return {crossing.begin(), crossing.end()};
}

std::vector<Tensors> spread_by_layer(const ModelSpec& model, const PrefixFeatures& features) {
  const std::vector<LayerOutput> boundary = find_boundary(model, features.depth);
  ENSURE(boundary.size() == features.tensors.size(), "a tensor for each output at the boundary");
  std::vector<Tensors> layers(static_cast<std::size_t>(features.depth));
  for (std::size_t i = 0; i < boundary.size(); ++i) {
    Tensors& outputs = layers[boundary[i].layer.index()];
    if (outputs.size() <= boundary[i].output) outputs.resize(boundary[i].output + 1);
    outputs[boundary[i].output] = features.tensors[i];
  }
  return layers;
}

}  // namespace frazil
