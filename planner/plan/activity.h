#pragma once
// What each layer must compute under a freeze mask (design page, "Freeze mask"):
//   active(l)    has parameters and its block is not frozen, or uses a tied parameter that some
//                active block uses
//   F            always, but for the layers of a cached frozen prefix, whose output is read instead
//   edge u -> l carries a gradient iff it is a gradient edge, l reaches a loss along gradient edges
//                (or has one), and u is active or has an active ancestor along gradient edges
//   I_l          some incoming edge carries a gradient
//   W_l          l is active and reaches a loss

#include <vector>

#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "traces/freeze_mask.h"

namespace frazil {

struct LayerActivity {
  bool active = false;
  bool input_gradient = false;   // I
  bool weight_gradient = false;  // W, reduction and update
  friend bool operator==(const LayerActivity&, const LayerActivity&) = default;
};

struct Activity {
  std::vector<LayerActivity> layers;  // by LayerId
  std::vector<bool> edge_carries;     // by position in ModelProfile::edges
  int cached = 0;                     // layers [0, cached) have no F

  bool backward(LayerId layer) const {
    const LayerActivity& a = layers.at(layer.index());
    return a.input_gradient || a.weight_gradient;
  }
  bool is_cached(LayerId layer) const { return layer.value < cached; }
};

Activity find_activity(const ModelProfile& profile, const FreezeMask& mask);
// Layers of the longest prefix of layers that are not active, have no backward and no loss: what a
// plan may cache under a mask.
int count_frozen_prefix(const ModelProfile& profile, const Activity& activity);
// Under the mask of a plan. Where it caches the frozen prefix, that is `cached`; no layer of it may
// lie outside the first stage of some pipeline, or InfeasibleError says which.
Activity find_activity(const ModelProfile& profile, const Plan& plan);

// Whether a stage has any backward, weight gradient or update to do.
bool stage_has_backward(const Stage& stage, const Activity& activity);
bool stage_has_update(const Stage& stage, const Activity& activity);

}  // namespace frazil
