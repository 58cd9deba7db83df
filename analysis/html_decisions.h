#pragma once
// What a run has decided, for the report page: masks with who decided and why, and the transitions
// from plan to plan, predicted beside measured.

#include <string>

#include "traces/freeze_trace.h"

namespace frazil {

// Both empty where the trace has none. A decision that changes nothing is told only by its log.
std::string draw_decisions(const FreezeTrace& trace);
std::string draw_transitions(const FreezeTrace& trace);

}  // namespace frazil
