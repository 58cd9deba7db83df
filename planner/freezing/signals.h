#pragma once
// clang-format off
// Signals are what a freeze decision may read: numbers that are already reduced over micro-batches,
// devices and replicas, so that a decision is the same wherever it is made. Vectors hold one entry
// per block, embedding first, and are empty where not measured; the entry of a frozen block is not
// read. Readers:
//   pt-paper     gradient_norms
//   autofreeze   interval_gradients
//   plasticity   plasticity, and learning_rate with "per_rate" or "thaw_at_rate"
//   validation guard   validation
// Every other policy and decorator reads the step alone.
// clang-format on

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

// The largest signal that counts as a number: its square must be finite too.
inline constexpr double kLargestReading = 1e100;

std::string_view name_of(Signal signal);  // "gradient_norms"

// The latest evaluation on held-out samples, which are used neither for training nor for the test.
// The guard reads each evaluation once, however often it is passed.
struct Validation {
  Step step = 0;             // the weights were evaluated before this step ran
  double loss = 0;           // mean over the samples; not finite where the run has diverged
  double accuracy = 0;       // 0..1
  std::int64_t samples = 0;  // that were evaluated; 0: not known
  friend bool operator==(const Validation&, const Validation&) = default;
};

struct FreezeSignals {
  Step step = 0;  // about to run; all signals were measured before it
  // L2 norm of the gradient of the block's parameters in step - 1, before clipping.
  std::vector<double> gradient_norms = {};
  // L1 norm of the sum of the block's gradients over all steps since the last decision that read
  // this signal, or since the first step. Gradients are summed before the norm is taken.
  std::vector<double> interval_gradients = {};
  // plasticity() of the block's outputs on a fixed probe batch: now against the last decision that
  // read this signal, or against the first step. It has no unit.
  std::vector<double> plasticity = {};
  std::optional<double> learning_rate = std::nullopt;  // in `step`
  std::optional<Validation> validation = std::nullopt;
};

}  // namespace frazil
