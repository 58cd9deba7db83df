#pragma once
// What gradients take while they are reduced, on top of what is reserved for them: measured as
// planner/lowering/reduction_memory.h charges it.

#include <algorithm>
#include <cstdint>
#include <functional>

#include "exec/measuring/memory_account.h"

namespace frazil {

// Told how many bytes of the gradients in question a device holds, whenever more have come.
using TellHeld = std::function<void(std::int64_t)>;

// From its making to its end the account has the most it was told of.
class ReductionMeter {
 public:
  ReductionMeter(MemoryAccount& account, Bytes reserved) : account_(account), reserved_(reserved) {}
  ~ReductionMeter() { account_.change(MemoryKind::kGradients, -beyond_); }
  ReductionMeter(const ReductionMeter&) = delete;
  ReductionMeter& operator=(const ReductionMeter&) = delete;

  void hold(std::int64_t bytes) {
    const std::int64_t more = bytes - reserved_.count - beyond_;
    if (more <= 0) return;
    account_.change(MemoryKind::kGradients, more);
    beyond_ += more;
  }

 private:
  MemoryAccount& account_;
  Bytes reserved_;
  std::int64_t beyond_ = 0;
};

}  // namespace frazil
