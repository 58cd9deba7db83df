#include "exec/train/loop/step_windows.h"

#include <algorithm>
#include <iterator>

#include "planner/transitions/cache_residency.h"

namespace frazil {

// A mask that was foreseen may have been declined for memory. It is asked for again at every step,
// and when masks change then is no longer known.
bool StepWindows::has_declined() const {
  const std::optional<Step> decided = parts_.freezing.decided();
  if (!decided || parts_.freezing.masks().empty()) return false;
  const auto next =
      std::upper_bound(masks_->begin(), masks_->end(), *decided,
                       [](Step step, const TracedMask& mask) { return step < mask.step; });
  return next == masks_->begin() || std::prev(next)->mask != parts_.freezing.masks().back().mask;
}

// Of a run whose masks are not listed, because it is too long, every step is a window of its own.
bool StepWindows::may_change_mask(Step step) {
  if (!has_asked_) {
    has_asked_ = true;
    masks_ = foresee_masks(parts_.config.freeze, parts_.shape);
  }
  return !masks_ || has_declined() ||
         std::any_of(masks_->begin(), masks_->end(),
                     [step](const TracedMask& mask) { return mask.step == step; });
}

bool StepWindows::end_at(Step done) {
  const auto& durable = parts_.options.durable;
  return done >= parts_.steps || done % parts_.steps_per_epoch == 0 ||
         (durable && done % durable->every == 0) || may_change_mask(done);
}

}  // namespace frazil
