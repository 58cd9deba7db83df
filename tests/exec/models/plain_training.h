#pragma once
// Training written down without stages: one autograd graph over the whole model per micro-batch,
// gradients added by hand, weights changed by hand. What the executor is compared with.

#include <string>
#include <vector>

#include "tests/exec/models/test_models.h"

namespace frazil {

using LayerTensors = std::vector<Tensors>;  // by layer

// Start values by seed; those of a tied parameter are one tensor when `shares`, else one per use.
LayerTensors start_values(const ModelSpec& model, std::uint64_t seed, bool shares = false);

struct Differentiated {
  std::vector<double> losses;  // scaled, by micro-batch and then by layer
  LayerTensors gradients;      // undefined where no loss depends on it
};

// Only parameters of blocks that train, and tied ones that some such block uses, require gradients.
void freeze(const ModelSpec& model, LayerTensors& parameters, const std::string& mask);

// One micro-batch: all losses times `scale`. Detached edges are cut; a layer without a parameter
// that trains is in evaluation.
Differentiated differentiate(const ModelSpec& model, const LayerTensors& parameters,
                             const Samples& samples, const RandomKey& key, double scale);

// (0 + 1) + (2 + 3), the executor's tree of four. Undefined ones stay so.
LayerTensors add_four(const std::vector<LayerTensors>& gradients);
// Gives every use of a tied parameter the sum of all uses, in layer order.
void add_uses(const ModelSpec& model, LayerTensors& gradients);

// What differentiate gives for a whole step of four micro-batches, gradients added.
Differentiated differentiate_step(const ModelSpec& model, const LayerTensors& parameters,
                                  const std::vector<Samples>& micro_batches, std::uint64_t seed,
                                  Step step);

// Weights minus rate times gradients; a shared tensor once.
void descend(LayerTensors& parameters, const LayerTensors& gradients, double rate);

}  // namespace frazil
