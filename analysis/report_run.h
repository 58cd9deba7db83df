#pragma once
// Reads a run from its folder: the trace, and the time lines and memory of its phases.

#include <optional>
#include <string>
#include <vector>

#include "analysis/memory_record.h"
#include "traces/freeze_trace.h"
#include "traces/timeline.h"

namespace frazil {

// The steps of a run under one plan.
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
// phase-<i>/{predicted.csv,measured.csv,memory.json} for the i-th plan event of the trace;
// memory.json may be missing. If the run was interrupted, reads its log, events.jsonl, with the
// costs of its steps added up, and the phases that are there; its trace is then open. Throws
// InputError.
ReportRun read_run(const std::string& folder);

}  // namespace frazil
