#pragma once
// A run as its folder holds it: the trace, and the time lines and memory of its phases.

#include <optional>
#include <string>
#include <vector>

#include "analysis/memory_record.h"
#include "traces/freeze_trace.h"
#include "traces/timeline.h"

namespace frazil {

// A stretch of a run between two plans.
struct ReportPhase {
  Step first_step = 0;
  std::string summary;  // of the plan
  Timeline predicted;   // one step
  Timeline measured;    // sampled steps of this phase
  std::optional<MemoryRecord> memory = {};
};

struct ReportRun {
  std::string name;  // "elastic", "unfrozen"
  FreezeTrace trace;
  std::vector<ReportPhase> phases;
};

// Reads what `frazil train --out FOLDER` leaves: trace.jsonl, and
// phase-<i>/{predicted.csv,measured.csv,memory.json} for the i-th plan event of the trace; the last
// may be missing. Of a run that was interrupted the log, events.jsonl, with the costs of its steps
// added up, and those of the phases that are there; its trace is open. Throws InputError.
ReportRun read_run(const std::string& folder);

}  // namespace frazil
