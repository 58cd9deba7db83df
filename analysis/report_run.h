#pragma once
// Reads a run from its folder: the trace, and the time lines and memory of its phases.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/memory_record.h"
#include "analysis/run_summary.h"
#include "traces/freeze_trace.h"
#include "traces/timeline.h"

namespace frazil {

// The steps of a run under one plan.
struct ReportPhase {
  Step first_step = 0;
  std::string summary;  // of the plan
  Timeline predicted;   // one step
  Timeline measured;    // sampled steps of this phase
  // As the time line tells it; none: one process has measured it.
  std::optional<Duration> clock_uncertainty = {};
  std::optional<MemoryRecord> memory = {};
  std::filesystem::path trace_file = {};  // both time lines for Perfetto; empty: not there
};

struct ReportRun {
  std::string name;  // "elastic", "unfrozen"
  FreezeTrace trace;
  std::vector<ReportPhase> phases;
  std::vector<std::string> doubts = {};  // on the profile and on phases left out
};

// Reads what `frazil train --out FOLDER` leaves: trace.jsonl, and
// phase-<i>/{predicted.csv,measured.csv,memory.json} for the i-th plan event of the trace;
// memory.json may be missing. A phase without one of its time lines is read as without both, and a
// doubt says so. If the run was interrupted, reads its log, events.jsonl, with the
// costs of its steps added up, and the phases that are there; its trace is then open. Doubts are
// those of the model profile that the run keeps, if it keeps one. Throws InputError.
ReportRun read_run(const std::string& folder);

// Sums up a run with all that its folder tells.
RunSummary summarize(const ReportRun& run);

}  // namespace frazil
