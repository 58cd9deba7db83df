#pragma once
// A model's weights under the names that readers of its file expect: those of its parameters, which
// follow Hugging Face's. Where a parameter holds query, key and value one after another, they are
// three tensors each.

#include <vector>

#include "exec/models/model.h"
#include "exec/models/named_tensor.h"

namespace frazil {

// Returns the weights in the order of layers, as views of `parameters`, which are those of the
// model, by layer.
std::vector<NamedTensor> name_weights(const ModelSpec& model,
                                      const std::vector<const Tensors*>& parameters);
// Returns running statistics so, of a model whose layers have these, by layer.
std::vector<NamedTensor> name_statistics(const ModelSpec& model,
                                         const std::vector<const Tensors*>& statistics);

}  // namespace frazil
