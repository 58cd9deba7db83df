#pragma once
// Draws what a run has decided, for the report page: masks with who decided and why, the
// transitions from plan to plan, what became of its cache, predicted beside measured, and of costs
// and devices.

#include <string>

#include "traces/freeze_trace.h"

namespace frazil {

// Each returns "" if the trace has no such event. A decision that changes nothing is told only by
// the run's log.
std::string draw_decisions(const FreezeTrace& trace);
std::string draw_transitions(const FreezeTrace& trace);
std::string draw_cache(const FreezeTrace& trace);
std::string draw_drift(const FreezeTrace& trace);

}  // namespace frazil
