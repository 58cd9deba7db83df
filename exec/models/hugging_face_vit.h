#pragma once
// The vision transformer's weights as Hugging Face's `ViTForImageClassification` holds them, so
// that its load_state_dict() takes them as they are. Two kinds of tensors differ from the model's
// own (exec/models/vit.h): query, key and value are three tensors each, which lie one after another
// in the model's one, and the weight of the patch projection has the shape of a convolution, [dim,
// channels, patch, patch].

#include <vector>

#include "exec/models/named_tensor.h"
#include "exec/models/vit.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// Returns the weights in the order of layers; they are views of `parameters`, which are those of
// make_vit(config), by layer.
std::vector<NamedTensor> to_hugging_face(const VitConfig& config,
                                         const std::vector<const Tensors*>& parameters);

}  // namespace frazil
