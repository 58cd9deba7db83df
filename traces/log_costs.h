#pragma once
// What the steps of a log cost, as the trace of its run has it.

#include <vector>

#include "traces/freeze_trace.h"

namespace frazil {

// The events of a log, and a cost event for each stretch of it: the steps of a whole batch from a
// plan or an evaluation on to the next, added up and told where the stretch begins. With steps and
// checkpoints left out, these are the events of the trace of the run so far.
std::vector<FreezeEvent> add_costs(const FreezeTrace& log);

}  // namespace frazil
