#pragma once
// Names what a thread gives to a GPU while it lives, for profilers (NVTX): by the action's text.

#include "exec/devices/compute_device.h"
#include "traces/action.h"

namespace frazil {

class ActionRange {
 public:
  ActionRange(const ComputeDevice& device, const Action& action) : lanes_(device.lanes()) {
    if (lanes_ != nullptr) lanes_->begin_range(to_text(action));
  }
  ~ActionRange() {
    if (lanes_ != nullptr) lanes_->end_range();
  }
  ActionRange(const ActionRange&) = delete;
  ActionRange& operator=(const ActionRange&) = delete;

 private:
  const GpuLanes* lanes_;
};

}  // namespace frazil
