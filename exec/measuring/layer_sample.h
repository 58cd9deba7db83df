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
};

struct LayerSample {
  LayerId layer;
  LayerPhase phase = LayerPhase::kForward;
  int samples = 0;  // in the micro-batch; 0 for an update
  Duration duration{0};
  DeviceId device = {};
};

}  // namespace frazil
