#pragma once
// A layer sample is the time that one phase of a layer has taken for one micro-batch.

#include <cstdint>

#include "profiles/units.h"

namespace frazil {

enum class LayerPhase : std::uint8_t {
  kForward,
  kLoss,                 // of the layer with the loss, after its forward
  kBackward,             // input and weight gradients in one pass, as far as the layer needs them
  kBackwardInput,        // I (dgrad) alone
  kBackwardWeight,       // W (wgrad) after the layer's I, in a schedule that splits the backward
  kBackwardWeightAlone,  // W in a backward that is split for measuring
  kUpdate,
  kStatistics,  // a step has folded its micro-batches into the running statistics
};

// True of a phase that a step has once for each layer, whatever its micro-batches.
inline bool ends_step(LayerPhase phase) { return phase >= LayerPhase::kUpdate; }

struct LayerSample {
  LayerId layer;
  LayerPhase phase = LayerPhase::kForward;
  int samples = 0;  // in the micro-batch; 0 at the end of a step
  Duration duration{0};
  DeviceId device = {};
};

}  // namespace frazil
