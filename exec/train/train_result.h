#pragma once
// TrainResult is the answer of a training run that has ended, TrainProgress what it tells while it
// lasts.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/plan_regret.h"
#include "exec/cache/cache_report.h"
#include "exec/train/train_phase.h"
#include "planner/freezing/signals.h"
#include "profiles/units.h"
#include "traces/freeze_trace.h"

namespace frazil {

// How much of a run its watch over costs could read, in windows of steps (planner/drift).
struct DriftWatch {
  int windows = 0;   // that were read, those of baselines among them
  int excluded = 0;  // that were left out, beside other programs
};

struct TrainResult {
  FreezeTrace trace;
  std::vector<TrainPhase> phases;
  double loss = 0;                                // on the test part, after the last step
  std::optional<double> accuracy = std::nullopt;  // of a model that classifies
  std::optional<Validation> validation;           // after the last step; none without samples
  std::int64_t test_samples = 0;
  bool local_statistics = false;  // slices normalise by their own: bits follow from the plans
  Duration training_time{0};      // steps and transitions; not evaluation
  // From the first step of this process to the last with all that lies between, but for evaluations
  // that no decision reads, and what the planner was asked before; the sum over the phases.
  Duration wall_time{0};
  std::uint64_t weight_hash = 0;
  Bytes process_peak_resident;                     // from the start of the process
  std::optional<double> foreign_cores;             // cores that other programs kept busy
  std::optional<CacheReport> cache;                // none: the run has no cache
  std::optional<DriftWatch> watch = std::nullopt;  // none: nothing was watched
  std::optional<PlanRegret> regret;  // none: the run follows no trajectory, or has not ended
  // The first step of this process; `phases` begin there. The trace is that of the whole run if the
  // event log has the steps before, else it has only the masks of these steps.
  Step first_step = 0;
  std::size_t first_phase = 0;  // phases that the trace has before
  // The steps done when the run was asked to stop; evaluated if the epoch was over then.
  std::optional<Step> stopped_at;
};

// The progress that a person is told of while the run lasts.
struct TrainProgress {
  Step step = 0;
  Step steps = 0;
  int epoch = 0;
  double loss = 0;                 // of the last step
  std::optional<double> accuracy;  // of the last evaluation
  std::optional<Validation> validation = {};
  std::string event;        // "blocks 0-2 frozen: 1 stage x 2 pipelines, ..." or empty
  bool is_warning = false;  // the event tells what went wrong, or is not done that was asked for
};

}  // namespace frazil
