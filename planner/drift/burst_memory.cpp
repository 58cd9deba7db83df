#include "planner/drift/burst_memory.h"

#include "profiles/error.h"

namespace frazil {

// The oldest is forgotten first, and no two are of one window.
void BurstMemory::begin_window() {
  ++window_;
  if (!bursts_.empty() && window_ - bursts_.front().window > kBurstWindows) {
    bursts_.erase(bursts_.begin());
  }
}

// A burst that is not greater than a later one will never be the greatest again.
void BurstMemory::add(int score) {
  ENSURE(score > 0, "a score that had risen");
  while (!bursts_.empty() && bursts_.back().score <= score) bursts_.pop_back();
  if (bursts_.empty() || bursts_.back().window < window_) bursts_.push_back({window_, score});
}

}  // namespace frazil
