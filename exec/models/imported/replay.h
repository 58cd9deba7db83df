#pragma once
// One step of a model layer by layer, with the gradients of all parameters.

#include <map>
#include <string>

#include "exec/models/model.h"

namespace frazil {

struct Replay {
  at::Tensor loss;
  Tensors outputs;                              // of the last layer
  std::map<std::string, at::Tensor> gradients;  // by parameter; of a tied one the sum, by `tied`
};

// Runs forward, loss and backward with the models' start values and all layers active. Gradients of
// a value that several layers read, and of the uses of a tied parameter, are added from the last
// layer to the first, as PyTorch's engine does. `splits`: by I of all layers and then W of all.
Replay replay_step(const ModelSpec& model, const Samples& samples, const RandomKey& key,
                   bool splits);

}  // namespace frazil
