#pragma once
// Four balanced stages whose times vary, in steps with a barrier and in decoupled ones. A barrier
// waits for the slowest stage of each step. Decoupled stages wait for the relay alone; what they
// wait grows with the root of the steps while queues between the stages fill, so a first part of
// each run is left out.

#include "planner/reproduce/pipe_bd/loaded_steps.h"

namespace frazil {

struct VaryingOptions {
  std::uint64_t seed = 1;
  int runs = 200;
  int steps = 1'000;  // that count; as many before them do not
};

// The mean time of a step over all runs.
struct VaryingResult {
  VaryingOptions options;
  double barrier_ms = 0;
  double decoupled_ms = 0;
};

// What the times are compared with, for stages that each take 15 to 25 ms. With a barrier it is the
// mean of the largest of four, 15 + 10 x 4/5. Without, no formula is known: it is the mean of the
// recursion "a step ends after the one before it and after the stage before it" over these steps.
inline constexpr double kBarrierStepMs = 23.00;
inline constexpr double kDecoupledStepMs = 20.09;

VaryingResult simulate_varying(const VaryingOptions& options);

// True if both times are within kVaryingError of the known ones.
inline constexpr double kVaryingError = 0.002;
bool is_as_known(const VaryingResult& result);

}  // namespace frazil
