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
// Draws one phase; `number` counts from 0, as in phase-<i>/. `spans_left` is how many more spans
// (bars of a time line) the page may hold, and what is drawn is subtracted; if the phase has more,
// its time lines are left out. A phase without predicted spans gets its heading and a remark alone.
std::string draw_phase(const ReportPhase& phase, std::size_t number, std::size_t& spans_left);

}  // namespace frazil
