#pragma once
// ReductionMeter measures the memory that gradients take while they are reduced, on top of what is
// reserved for them, as planner/lowering/reduction_memory.h charges it.

#include <algorithm>
#include <cstdint>
#include <functional>

#include "exec/measuring/memory_account.h"

namespace frazil {

// Is told how many bytes of the gradients in reduction a device holds, whenever more have come.
using TellHeld = std::function<void(std::int64_t)>;

// A meter charges the account with the most that hold() was told of beyond `reserved`, until the
// meter ends.
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
