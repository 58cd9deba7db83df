#pragma once
// A phase of a run: what is predicted of it when it begins, and which of its steps are measured.

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

// A stretch of steps under one plan.
struct TrainPhase {
  Step first_step = 0;
  Plan plan;
  Timeline predicted;  // one step
  Duration predicted_step{0};
  bool extrapolated = false;  // the prediction goes beyond the measured micro-batch sizes
  Timeline measured;          // sampled steps
  std::int64_t steps = 0;     // full batches
  Duration measured_time{0};  // of them, gathering of samples included
  // Of the second step that is full, measured besides its time; none of a shorter phase.
  std::optional<MemoryRecord> memory;

  double predicted_samples_per_second() const;
  double measured_samples_per_second() const;  // 0 when no full batch ran
};

struct BegunPhase {
  TrainPhase phase;
  MemoryRecord memory;  // predicted
};

// Throws InfeasibleError where the plan does not fit; `file`: of one that was given.
BegunPhase predict_phase(Step first, const Plan& plan, const TrainOptions& options,
                         const std::string& file);

// Spans are kept of every eighth step, but of the first ones (new executors, cold caches).
bool is_sampled(const TrainPhase& phase, Step step);

// What a step has measured, beside what was predicted.
MemoryRecord add_measured(MemoryRecord record, Step step, std::vector<MeasuredMemory> measured);

}  // namespace frazil
