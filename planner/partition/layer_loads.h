#pragma once
// The load of each layer under a freeze mask, for micro-batches of one size, as the planners that
// cut a chain of layers read it: the times of F, I (dgrad) and W (wgrad) as far as the layer has
// them, and bytes.

#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

struct LayerLoad {
  Duration forward{0};   // 0 of an idle layer
  Duration backward{0};  // I and W, as far as they exist
  Duration update{0};
  Bytes state;   // parameters; where the layer is updated also gradients and optimizer state
  Bytes stash;   // saved activations of one micro-batch; 0 where the layer has no backward
  Bytes output;  // largest tensor that it sends along one edge, for one micro-batch

  Duration time() const { return forward + backward; }  // for one micro-batch
};

std::vector<LayerLoad> find_layer_loads(const ModelProfile& profile, const Activity& activity,
                                        int micro_batch_size);

}  // namespace frazil
