#pragma once
// Says which gradients a step computes once it is known which layers train. This is the part of a
// freeze mask's consequences that follows from the graph of layers alone:
// clang-format off
//   u -> l carries a       iff it is a gradient edge, l reaches a loss along gradient edges (or has
//   gradient               one), and u trains or has an ancestor along gradient edges that trains
//   l runs I (dgrad)       iff some incoming edge carries a gradient
//   l runs W (wgrad)       iff l trains and reaches a loss
// clang-format on

#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

struct LayerGradients {
  bool input = false;   // I
  bool weight = false;  // W
  bool any() const { return input || weight; }
  friend bool operator==(const LayerGradients&, const LayerGradients&) = default;
};

struct GradientFlow {
  std::vector<LayerGradients> layers;  // by LayerId
  std::vector<bool> edge_carries;      // by position in ModelProfile::edges
};

// Returns the gradients of a step in which the layers of `trains` (one bit a layer) train. Requires
// edges as they are sorted in a valid profile.
GradientFlow find_gradient_flow(const ModelProfile& profile, const std::vector<bool>& trains);

// Returns the gradients of a step in which nothing is frozen: every layer that has trainable
// parameters or uses a tied parameter that is trainable trains.
GradientFlow find_unfrozen_flow(const ModelProfile& profile);

}  // namespace frazil
