#pragma once
// A phase of a run is a span of steps under one plan: what is predicted when it begins, and which
// of its steps are measured.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/memory_record.h"
#include "exec/measuring/memory_account.h"
#include "exec/train/train_options.h"
#include "planner/plan/plan.h"
#include "profiles/units.h"
#include "traces/timeline.h"

namespace frazil {

// The prediction and the measurements of one phase.
struct TrainPhase {
  Step first_step = 0;
  Plan plan;
  // How many steps are handed out at once (planner/plan/step_window.h). A whole window is sampled
  // or none of its steps.
  Step window = 1;
  std::string in_step = {};  // why that is 1 although the plan has steps ahead; else empty
  Timeline predicted;        // one step, or one window
  Duration predicted_step{0};
  bool extrapolated = false;  // the prediction goes beyond the measured micro-batch sizes
  Timeline measured;          // sampled steps, spread over the whole phase
  // How sure times of different processes are beside each other; none: one process measures.
  std::optional<Duration> clock_uncertainty = std::nullopt;
  Step sampled_every = 8;     // steps from one sample to the next, of windows at least
  std::int64_t steps = 0;     // full batches
  Duration measured_time{0};  // of `steps`, with gathering samples
  // From its transition to the next one (the first phase: from its first step) with all that lies
  // between, but for evaluations that no decision reads.
  Duration wall_time{0};
  // Measured in the first full step after the phase's first whose spans are not kept, besides its
  // time; none for a shorter phase.
  std::optional<MemoryRecord> memory;

  double predicted_samples_per_second() const;
  double measured_samples_per_second() const;  // 0 when no full batch ran
};

struct BegunPhase {
  TrainPhase phase;
  MemoryRecord memory;  // predicted
};

// Predicts the phase that begins with step `first`. Throws InfeasibleError if the plan does not
// fit; `file`: that of a given plan.
BegunPhase predict_phase(Step first, const Plan& plan, const TrainOptions& options,
                         const std::string& file);

// The first steps of a phase, whose times say nothing of the others: new executors, cold caches.
inline constexpr Step kColdSteps = 3;
// True if spans of the step, or of the whole window that begins with it, are kept: one in
// `sampled_every`, without the cold ones.
bool is_sampled(const TrainPhase& phase, Step step);
// Keeps the spans of a sampled step; those of a window come one after another. How long a phase
// will be is not known: where there are more than 40 sampled steps, of windows more than 3, about
// every second sample is dropped and `sampled_every` doubled, so that the samples of a phase of any
// length lie evenly between its first steps and its last.
void keep_sample(TrainPhase& phase, const StepResult& step);

// Returns the predicted record with what a step has measured.
MemoryRecord add_measured(MemoryRecord record, Step step, std::vector<MeasuredMemory> measured);

}  // namespace frazil
