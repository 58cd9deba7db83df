#pragma once
// Tabulates what became of the costs and the devices of a run: each drift with what was decided and
// by which figures, and the devices that a plan has released or asked back.

#include "analysis/tables/table.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Returns a table without rows if the trace tells nothing of either.
Table tabulate_drift(const FreezeTrace& trace);

}  // namespace frazil
