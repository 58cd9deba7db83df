#pragma once
// Adds the cost events of a run's trace to the log that the run writes.

#include <vector>

#include "traces/freeze_trace.h"

namespace frazil {

// Returns the events of a log with a cost event for each stretch of it that has a whole step, one
// with all samples of its plan's batch, and sums these steps alone. A stretch lasts from a plan or
// an evaluation to the next one. Its cost event has the step of that event and stands right behind
// it, or behind the transition that follows a plan. Without its steps and checkpoints, the result
// is the events of the trace of the run so far; events of a cache may stand on the other side of a
// cost of the same step. Requires: no cost events in the log.
std::vector<FreezeEvent> add_costs(const FreezeTrace& log);

}  // namespace frazil
