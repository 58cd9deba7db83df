#pragma once
// A training that has diverged ends at once, with exit code 10. These functions look for it; each
// throws Diverged with one sentence that names the step and what is not finite, and changes
// nothing. Losses and gradients are looked at in every step, weights and moments before they are
// kept.

#include "exec/run/run.h"

namespace frazil {

// Looks at the loss and the gradients of a step.
void refuse_non_finite(Step step, const StepResult& result, const ModelSpec& model);
// Looks at the losses of samples ("test") with the weights of the first `done` steps.
void refuse_non_finite(Step done, const Run::Evaluation& evaluation, const char* samples);
// Looks at all weights and moments after `done` steps.
void refuse_non_finite_weights(Step done, Run& run);

}  // namespace frazil
