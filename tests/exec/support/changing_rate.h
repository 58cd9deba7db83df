#pragma once
// The learning rate of tests of equal bits: by the trainer's rule, and another one at every step.

#include "exec/state/optimizer.h"

namespace frazil {

// Returns the rate of step `step` of a test of `steps`: two steps of warm-up, then along the
// cosine. The rule's third step, at which the cosine begins where the warm-up has ended, is left
// out.
inline double changing_rate(OptimizerConfig optimizer, Step step, Step steps) {
  optimizer.warm_up_steps = 2;
  return learning_rate(optimizer, step < 2 ? step : step + 1, steps + 2);
}

}  // namespace frazil
