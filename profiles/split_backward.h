#pragma once
// Makes I (dgrad) and W (wgrad) of a layer's backward B that was measured as one number. The rule
// looks at what the layer computes where nothing is frozen (profiles/gradient_flow.h):
// clang-format off
//   I and W      I = floor(B/2), W = B - I
//   W alone      I = 0, W = B: the inputs of a first layer have no gradient, so all of B was W
//   I alone      I = B, W = 0: no parameters
//   neither      W = B with parameters, else I = B; no step runs it
// clang-format on
// W without I costs the same as W after I, since neither was measured.

#include "profiles/gradient_flow.h"
#include "profiles/model_profile.h"

namespace frazil {

// Sets the three backward costs of a sample of `layer`, which has the gradients `gradients`.
void split_backward(Duration whole, const Layer& layer, const LayerGradients& gradients,
                    CostSample& cost);

// Splits every backward of a profile whose samples hold their whole B as backward_input, and sets
// the profile's flag. What a program measured as the backward of a layer that computes no gradient
// is the time of a neighbour: it is moved, before the split, to the nearest layer with a backward,
// first along the edges to later layers, then to earlier ones, then by place. So the sum over the
// layers that run a backward is that of all layers, as long as any layer runs one. Returns how much
// time was moved, or found no layer to go to, summed over layers and samples.
// Requires: layers with samples of equal sizes. A sum of more than kLargestQuantity is left for
// validate() to refuse.
struct MovedBackward {
  Duration moved{0};
  Duration lost{0};  // nothing trains
};
MovedBackward split_whole_backwards(ModelProfile& profile);

}  // namespace frazil
