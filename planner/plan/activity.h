#pragma once
// Says what each layer must compute under a freeze mask: the forward F, the input gradient I
// (dgrad), the weight gradient W (wgrad). These are the rules:
// clang-format off
//   l is active            l has trainable parameters and its block is not frozen, or l uses a
//                          trainable tied parameter that some active block uses
//   l trains               l is active or its block is not frozen: it runs in training mode, with
//                          dropout and statistics, whether it has anything to train or not
//   l is needed            l runs I or W, or trains and varies in training (as with statistics), or
//                          would not be needed with nothing frozen either, or some needed layer
//                          reads what it puts out
//   l runs F               if it is needed, except in a cached frozen prefix, whose output is read
//                          instead; the others are idle, and no message brings them anything
//   u -> l carries a       iff it is a gradient edge, l reaches a loss along gradient edges (or has
//   gradient               one), and u is active or has an active ancestor along gradient edges
//   l runs I               iff some incoming edge carries a gradient
//   l runs W               iff l is active and reaches a loss
// clang-format on
// Where nothing has a backward, as when only a head without parameters is unfrozen, all layers run
// F. Idle are, in blockwise distillation, a student's frozen block with its loss and the teacher's
// blocks that no later block needs. The losses of idle layers are not told.

#include <vector>

#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "traces/freeze_mask.h"

namespace frazil {

struct LayerActivity {
  bool active = false;
  bool input_gradient = false;   // I
  bool weight_gradient = false;  // W, reduction and update
  bool trains = false;           // runs in training mode, else in evaluation mode
  bool idle = false;             // is not needed and does not run
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
  bool is_idle(LayerId layer) const { return layers.at(layer.index()).idle; }
  bool has_forward(LayerId layer) const { return !is_cached(layer) && !is_idle(layer); }
};

// Returns the activity under `mask`, with nothing cached. Requires: one bit per block of the model.
Activity find_activity(const ModelProfile& profile, const FreezeMask& mask);
// Returns how many layers a plan may cache: the length of the longest prefix of layers that are
// idle, or are not active, have neither a backward nor a loss, and put out the same in every epoch:
// each is in evaluation mode or does not vary in training. No layer behind it reads an idle one.
int count_frozen_prefix(const ModelProfile& profile, const Activity& activity);
// Returns the activity under the mask of a plan. If the plan caches the frozen prefix, `cached` is
// the length of that prefix. Throws InfeasibleError, naming the stage, if a later stage of some
// pipeline holds a layer of the prefix.
Activity find_activity(const ModelProfile& profile, const Plan& plan);
// Returns the plan with its frozen prefix cached, or none if there is no prefix or the stages do
// not allow a cache.
std::optional<Plan> with_cached_prefix(const Plan& plan, const ModelProfile& profile);

// True if some layer of the stage has a backward (I or W).
bool stage_has_backward(const Stage& stage, const Activity& activity);
// True if some layer of the stage has a W, and so an update.
bool stage_has_update(const Stage& stage, const Activity& activity);

}  // namespace frazil
