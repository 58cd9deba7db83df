#pragma once
// Counts how long somebody has waited, as far as that says that something is stuck. Who waits looks
// once a tick. A look counts the time since the look before, at most two ticks: of the time in
// which the whole process was stopped (SIGSTOP, a suspended machine) nearly none counts, for it
// stopped those that are waited for as well. Where the threads of this process have used a core
// meanwhile, those that are waited for are slow rather than stuck, and a tenth counts.

#include "exec/devices/steady_time.h"
#include "profiles/units.h"

namespace frazil {

class TickCount {
 public:
  // The longest limit: its count and any time of the clock can be added.
  static constexpr Duration kLongest = std::chrono::hours(24 * 365);

  enum class Busy { kSpared, kCounted };

  // Requires: 0 < limit <= kLongest.
  explicit TickCount(Duration limit, Busy busy = Busy::kSpared);

  // How long to sleep between two looks: a tenth of a second, less for a short limit.
  Duration tick() const { return tick_; }
  // Counts the time since the last look. Returns whether what is counted has reached the limit.
  bool is_over();
  // Forgets all that is counted.
  void restart();

 private:
  Duration limit_;
  Duration tick_;
  Busy busy_;
  SteadyTime looked_;
  Duration used_{0};         // processor time of this process at the last look
  std::int64_t tenths_ = 0;  // of nanoseconds counted
};

}  // namespace frazil
