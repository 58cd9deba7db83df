#pragma once
// Training written down without stages, for the executor to be compared with: one autograd graph
// over the whole model per micro-batch, gradients added by hand, weights updated by hand.

#include <string>
#include <vector>

#include "tests/exec/models/test_models.h"

namespace frazil {

using LayerTensors = std::vector<Tensors>;  // by layer

// Returns start values by seed; those of a tied parameter are one tensor when `shares`, else one
// per use.
LayerTensors start_values(const ModelSpec& model, std::uint64_t seed, bool shares = false);

struct Differentiated {
  std::vector<double> losses;  // scaled, by micro-batch and then by layer
  LayerTensors gradients;      // undefined where no loss depends on it
};

// Only trainable parameters of blocks that train, and tied ones that some such block uses, require
// gradients.
void freeze(const ModelSpec& model, LayerTensors& parameters, const std::string& mask);

// Differentiates one micro-batch, with all losses times `scale`. Detached edges are cut; a layer
// without a parameter that trains is in evaluation, unless its block trains under `mask`. In bf16
// forward and losses run under autocast, entered and left once, with its cache of cast weights, as
// PyTorch's context does.
Differentiated differentiate(const ModelSpec& model, const LayerTensors& parameters,
                             const Samples& samples, const RandomKey& key, double scale,
                             Precision precision = Precision::kFp32, const std::string& mask = {});

// Adds (0 + 1) + (2 + 3), as in the executor's tree of four. Undefined gradients stay undefined.
LayerTensors add_four(const std::vector<LayerTensors>& gradients);
// Gives every use of a tied parameter the sum of all uses, in layer order.
void add_uses(const ModelSpec& model, LayerTensors& gradients);

// Differentiates a whole step of four micro-batches, and adds the gradients.
Differentiated differentiate_step(const ModelSpec& model, const LayerTensors& parameters,
                                  const std::vector<Samples>& micro_batches, std::uint64_t seed,
                                  Step step, Precision precision = Precision::kFp32,
                                  const std::string& mask = {});

// Subtracts rate times gradients from the weights, from a shared tensor once.
void descend(LayerTensors& parameters, const LayerTensors& gradients, double rate);

}  // namespace frazil
