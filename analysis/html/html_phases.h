#pragma once
// Draws the phases of a run, predicted beside measured, for the report page. A phase is the steps
// of a run under one plan: draw_phase_table() compares all of them, draw_phase() shows one with its
// time lines, its actions and its memory.

#include <cstddef>
#include <string>

#include "analysis/report_run.h"
#include "analysis/run_summary.h"

namespace frazil {

// Requires: at least one phase.
std::string draw_phase_table(const RunSummary& run);
// Draws one phase; `number` counts from 0, as in phase-<i>/. Drawn are the predicted step and the
// measured step of median length. Under them stand where the time of a step went, its actions, and
// which steps that is a mean of. `spans_left` is how many more spans (bars of a time line) the
// page may hold; what is drawn is subtracted, and if these two steps have more, the time lines are
// left out. Actions are listed only where a step was measured, memory only where it was recorded. A
// phase without predicted spans gets its heading, its plan's summary and one remark.
std::string draw_phase(const ReportPhase& phase, const PhaseSummary& summary, std::size_t number,
                       std::size_t& spans_left);

}  // namespace frazil
