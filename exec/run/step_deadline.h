#pragma once
// How long a single wait inside a step may last before something is stuck: five times what the step
// takes as it is predicted (which holds the awaited action and all that precedes it), longer by as
// much as other programs take of the cores, but at least five times the longest of the first steps
// under the plan and at least two seconds.

#include "exec/devices/foreign_load.h"
#include "exec/devices/steady_time.h"
#include "profiles/units.h"

namespace frazil {

class StepDeadline {
 public:
  static constexpr Duration kLeast = std::chrono::seconds(2);
  // Where nothing is predicted, until the first step is over.
  static constexpr Duration kUnknown = std::chrono::minutes(10);

  // Forgets all steps; kNoTime: no step is predicted.
  void begin_plan(Duration predicted_step);
  // Takes what a step took.
  void record(Duration step);
  // Returns how long a wait may last now.
  Duration time() const;

 private:
  Duration predicted_{0};
  Duration longest_{0};  // of the first steps
  int recorded_ = 0;
  double slowdown_ = 1;  // by other programs
  ForeignLoad load_;
  SteadyTime looked_ = std::chrono::steady_clock::now();
};

// Returns how much longer work takes on `cores` cores of which other programs keep `foreign` busy.
// At least an eighth of the cores is left.
double slow_down(int cores, double foreign);

}  // namespace frazil
