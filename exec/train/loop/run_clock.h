#pragma once
// RunClock tells how long the steps of a training take with all that lies between them: decisions,
// transitions, asking the planner, filling the cache, checkpoints. What is left out by name is in
// no lap. A sum of step times lacks what lies between steps.

#include <chrono>
#include <utility>

#include "exec/devices/steady_time.h"
#include "profiles/units.h"

namespace frazil {

class RunClock {
 public:
  // Returns the time since the last lap, or since the clock was made, less what was left out.
  Duration lap() {
    const SteadyTime now = std::chrono::steady_clock::now();
    const SteadyTime begun = std::exchange(begun_, now);
    return std::chrono::duration_cast<Duration>(now - begun) -
           std::exchange(left_out_, Duration{0});
  }
  // Takes a time that has just passed out of this lap.
  void leave_out(Duration time) { left_out_ += time; }

 private:
  SteadyTime begun_ = std::chrono::steady_clock::now();
  Duration left_out_{0};
};

}  // namespace frazil
