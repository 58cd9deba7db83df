#pragma once
// Tabulates what became of the cache of the frozen prefix in a run: one event per row, predicted
// beside measured.

#include "analysis/tables/table.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Returns a table without rows if the trace tells nothing of a cache.
Table tabulate_cache(const FreezeTrace& trace);

}  // namespace frazil
