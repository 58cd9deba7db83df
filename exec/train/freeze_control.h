#pragma once
// Freezing in a run: the authority, the signals it asks for, and what a checkpoint keeps of both.
// The trainer asks it between two steps; its answer is put in force on all devices at once.

#include <optional>
#include <string>
#include <vector>

#include "exec/run/freeze_signals.h"
#include "exec/run/run.h"
#include "exec/tensors/samples.h"
#include "exec/train/replanner.h"
#include "planner/freezing/freeze_authority.h"

namespace frazil {

class FreezeControl {
 public:
  // What a decision is told of beside what it measures.
  struct Before {
    std::vector<double> gradient_squares;  // of the step before, by layer
    double learning_rate = 0;              // of the step to come
    std::optional<Validation> validation;  // the latest
  };
  struct Decided {
    Decision decision;
    FreezeSignals signals;  // that were measured for it
  };

  // Plasticity is measured on the first of `samples`. References outlive this.
  FreezeControl(const FreezeConfig& config, const RunShape& shape, const Samples& samples, Run& run,
                Replanner& replanner);

  // Adds what the step before `step` is to measure for the decision about `step`.
  void ask(Step step, Measurement& measurement) const;
  // The mask from `step` on. Requires: asked of before the step before, steps one after another.
  Decided decide(Step step, const Before& before);
  // The mask that is expected after the one in force (FreezeAuthority::foresee).
  std::optional<FreezeMask> foresee(Step within) const { return authority_.foresee(within); }
  // Of the blocks' learning rates in a step; empty: all 1.
  std::vector<double> rate_factors(Step step) const;
  // The masks so far, each from the step on where it came into force.
  const std::vector<TracedMask>& masks() const { return masks_; }

  // All of it, as JSON on one line; what is given back to restore decides on as before. Throws
  // InputError naming `file` for what is not of this configuration and model.
  std::string to_json() const;
  void restore(const std::string& json, const std::string& file);

 private:
  FreezeSignals measure(Step step, const Before& before);
  PredictTransition predictor();
  FindRoom room_finder();

  FreezeConfig config_;
  RunShape shape_;
  Samples probe_;
  Run& run_;
  Replanner& replanner_;
  FreezeAuthority authority_;
  Sketches then_;  // of the last decision that read them, or of the first step
  Sketches now_;
  std::vector<TracedMask> masks_;
};

}  // namespace frazil
