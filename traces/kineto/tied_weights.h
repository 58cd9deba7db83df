#pragma once
// Finds the layers of a trace that share a weight with another one. Autograd hands such a weight's
// gradient on layer by layer and accumulates it once, at the layer whose backward comes last: an
// embedding has the AccumulateGrad, and the head above it a transposed gradient that nothing
// accumulates. With recorded shapes the two have the same bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

// What a layer's backward tells of its weights in a pass; bytes, 0 where shapes do not tell.
struct WeightFacts {
  std::int64_t largest = 0;        // of the gradients that were accumulated
  std::int64_t unaccumulated = 0;  // of all transposed gradients that were not
};

// Returns for each layer the one that accumulates its weight. None: all its gradients are
// accumulated, or not just one other layer has a gradient of these bytes.
std::vector<std::optional<std::size_t>> find_tied_layers(const std::vector<WeightFacts>& layers);

// Enters the layers that share a weight into the profile: as one tied parameter, and in the bytes
// of each layer that has a copy besides the accumulating one. Returns a sentence for each such
// copy.
std::vector<std::string> add_tied_weights(const std::vector<WeightFacts>& layers,
                                          ModelProfile& profile);

}  // namespace frazil
