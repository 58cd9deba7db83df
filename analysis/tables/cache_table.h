#pragma once
// What became of the cache of the frozen prefix in a run: an event a row, predicted beside
// measured.

#include "analysis/tables/table.h"
#include "traces/freeze_trace.h"

namespace frazil {

// No rows where the trace tells nothing of a cache.
Table tabulate_cache(const FreezeTrace& trace);

}  // namespace frazil
