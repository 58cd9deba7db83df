#include "exec/train/loop/step_windows.h"

#include <algorithm>

#include "planner/transitions/cache_residency.h"

namespace frazil {

// Of a run whose masks are not listed, because it is too long, every step is a window of its own.
bool StepWindows::may_change_mask(Step step) {
  if (!has_asked_) {
    has_asked_ = true;
    masks_ = foresee_masks(parts_.config.freeze,
                           {.blocks = static_cast<int>(parts_.options.profile.blocks.size()),
                            .steps = parts_.steps,
                            .steps_per_epoch = parts_.steps_per_epoch,
                            .seed = parts_.config.seed});
  }
  return !masks_ || std::any_of(masks_->begin(), masks_->end(),
                                [step](const TracedMask& mask) { return mask.step == step; });
}

bool StepWindows::end_at(Step done) {
  const auto& durable = parts_.options.durable;
  return done >= parts_.steps || done % parts_.steps_per_epoch == 0 ||
         (durable && done % durable->every == 0) || may_change_mask(done);
}

}  // namespace frazil
