#pragma once
// Adds the cost events of a run's trace to the log that the run writes.

#include <vector>

#include "traces/freeze_trace.h"

namespace frazil {

// Returns the events of a log with a cost event for each stretch of it. A stretch lasts from a plan
// or an evaluation to the next one; its cost event stands where the stretch begins and sums its
// steps of a whole batch. Without its steps and checkpoints, the result is the events of the trace
// of the run so far.
std::vector<FreezeEvent> add_costs(const FreezeTrace& log);

}  // namespace frazil
