#pragma once
// Steps of a window are handed out at once (planner/plan/step_window.h), so nothing can happen
// between them. StepWindows tells where something happens that all devices must have ended their
// steps for, as far as it is known ahead; the loop itself knows what it measures in which step.

#include <optional>
#include <vector>

#include "exec/train/loop/training_parts.h"
#include "planner/freezing/freeze_policy.h"

namespace frazil {

class StepWindows {
 public:
  // `parts` must outlive this object.
  explicit StepWindows(const TrainingParts& parts) : parts_(parts) {}

  // True if a window ends after so many steps: the run or an epoch does, a checkpoint is due, or
  // the mask of the next step may be another.
  bool end_at(Step done);

 private:
  bool may_change_mask(Step step);
  bool has_declined() const;

  const TrainingParts& parts_;
  bool has_asked_ = false;
  std::optional<std::vector<TracedMask>> masks_;  // once asked for, where they are known ahead
};

}  // namespace frazil
