#pragma once
// A phase of a run: what is predicted of it when it begins, and which of its steps are measured.

#include <string>
#include <vector>

#include "exec/memory_account.h"
#include "exec/trainer.h"

namespace frazil {

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
