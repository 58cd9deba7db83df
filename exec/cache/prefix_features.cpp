#include "exec/cache/prefix_features.h"

#include <ATen/core/Tensor.h>

#include "exec/models/boundary.h"
#include "profiles/error.h"

namespace frazil {

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
