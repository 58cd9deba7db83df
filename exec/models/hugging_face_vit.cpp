#include "exec/models/hugging_face_vit.h"

#include <ATen/ATen.h>

#include <string_view>

#include "exec/models/weight_names.h"

namespace frazil {

std::vector<NamedTensor> to_hugging_face(const VitConfig& config,
                                         const std::vector<const Tensors*>& parameters) {
  constexpr std::string_view kPatches = "vit.embeddings.patch_embeddings.projection.weight";
  std::vector<NamedTensor> weights = name_weights(make_vit(config), parameters);
  for (NamedTensor& weight : weights) {
    if (weight.name != kPatches) continue;
    weight.tensor = weight.tensor.view({config.dim, config.channels, config.patch, config.patch});
  }
  return weights;
}

}  // namespace frazil
