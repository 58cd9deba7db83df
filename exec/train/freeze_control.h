#pragma once
// FreezeControl is freezing in a run: the authority, the signals that it asks for, and what a
// checkpoint keeps of both. The trainer asks for a decision between two steps and puts it in force
// on all devices at once.

#include <optional>
#include <string>
#include <vector>

#include "exec/run/freeze_signals.h"
#include "exec/run/run.h"
#include "exec/tensors/samples.h"
#include "exec/train/plans/replanner.h"
#include "planner/freezing/freeze_authority.h"

namespace frazil {

// Returns the samples on which plasticity is measured, the first of the training part.
Samples probe_of(const SampleSource& samples);

class FreezeControl {
 public:
  // The data that a decision is told of beside the signals that are measured.
  struct Before {
    std::vector<double> gradient_squares;  // by layer, of the step before
    double learning_rate = 0;              // of the step to come
    std::optional<Validation> validation;  // the latest
  };
  struct Decided {
    Decision decision;
    FreezeSignals signals;  // measured for the decision
  };

  // Measures plasticity on the first of `samples`. The references must outlive this object.
  FreezeControl(const FreezeConfig& config, const RunShape& shape, const SampleSource& samples,
                Run& run, Replanner& replanner);

  // Adds to `measurement` what the step before `step` must measure for the decision about `step`.
  void ask(Step step, Measurement& measurement) const;
  // Returns the decision about the mask from `step` on. Requires: ask() was called for `step`
  // before the step before it; steps come one after another. After StepUndone it is to be called
  // again for the same step.
  Decided decide(Step step, const Before& before);
  // Returns the mask that is expected after the one in force (FreezeAuthority::foresee).
  std::optional<FreezeMask> foresee(Step within) const { return authority_.foresee(within); }
  // Returns the factors of the blocks' learning rates in a step; empty: all 1.
  std::vector<double> rate_factors(Step step) const;
  // Returns the step of the last decision; none before the first.
  std::optional<Step> decided() const { return authority_.state().step; }
  // Returns the masks so far, each with the step from which it was in force.
  const std::vector<TracedMask>& masks() const { return masks_; }

  // Write and read the state as JSON on one line; a restored FreezeControl decides as the saved one
  // would have. restore() throws InputError naming `file` if the text is not of this configuration
  // and model.
  std::string to_json() const;
  void restore(const std::string& json, const std::string& file);

 private:
  struct Unfinished {
    Decided decided;
    bool clears_sums = false;
  };

  Unfinished decide_anew(Step step, const Before& before);
  FreezeSignals measure(Step step, const Before& before);
  PredictTransition predictor();
  FindRoom room_finder();

  FreezeConfig config_;
  RunShape shape_;
  Samples probe_;
  Run& run_;
  Replanner& replanner_;
  FreezeAuthority authority_;
  Sketches then_;  // of the last decision that read sketches, or of the first step
  Sketches now_;
  std::vector<TracedMask> masks_;
  std::optional<Unfinished> unfinished_;  // a decision that nobody has been handed
};

}  // namespace frazil
