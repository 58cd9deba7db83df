#pragma once
// What planners that cut a chain of layers know of each layer under a freeze mask, for
// micro-batches of one size: the time of F, I and W as far as they exist, and bytes.

#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

struct LayerLoad {
  Duration forward{0};
  Duration backward{0};  // I, and W after it or alone
  Duration update{0};
  Bytes state;   // parameters, and gradients and optimizer state of layers that are updated
  Bytes stash;   // of one micro-batch, where the layer has a backward
  Bytes output;  // largest of the boundaries it feeds, of one micro-batch

  Duration time() const { return forward + backward; }  // of one micro-batch
};

std::vector<LayerLoad> find_layer_loads(const ModelProfile& profile, const Activity& activity,
                                        int micro_batch_size);

}  // namespace frazil
