#pragma once
// What a decision about freezing may read: numbers that are already reduced over micro-batches,
// devices and replicas, so that whoever decides anywhere decides the same. By block, embedding
// first; a frozen block's entry is not read. Empty: not measured. Who reads what:
//   pt-paper     gradient_norms
//   autofreeze   interval_gradients
//   plasticity   plasticity, and learning_rate with "per_rate" or "thaw_at_rate"
//   validation guard   validation
// Every other policy and decorator reads the step alone.

#include <optional>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

enum class Signal {
  kGradientNorms,
  kIntervalGradients,
  kPlasticity,
  kLearningRate,
  kValidation,
};

std::string_view name_of(Signal signal);  // "gradient_norms"

// The latest evaluation of samples that are neither trained on nor tested with; one is read once,
// however often it is shown.
struct Validation {
  Step step = 0;        // before which the weights were judged
  double loss = 0;      // mean over the samples; not finite where the run has diverged
  double accuracy = 0;  // 0..1
  friend bool operator==(const Validation&, const Validation&) = default;
};

struct FreezeSignals {
  Step step = 0;  // about to execute; what is measured was measured before it
  // L2 norm of the gradient of the block's parameters in step - 1, before clipping.
  std::vector<double> gradient_norms = {};
  // L1 norm of the sum of the block's gradients over all steps since the last decision that read
  // this, or since the first step: it is summed before the norm is taken.
  std::vector<double> interval_gradients = {};
  // plasticity() of the block's outputs on a fixed probe batch, now against the last decision that
  // read this, or against the first step. No unit.
  std::vector<double> plasticity = {};
  std::optional<double> learning_rate = std::nullopt;  // of step
  std::optional<Validation> validation = std::nullopt;
};

// The run that is decided about.
struct RunShape {
  int blocks = 1;
  Step steps = 1;
  Step steps_per_epoch = 1;
  std::uint64_t seed = 0;
};

}  // namespace frazil
