#pragma once
// Draws the phases of a run, predicted beside measured, for the report page: all in one table, then
// each with its time lines, its actions and its memory.

#include <cstddef>
#include <string>

#include "analysis/report_run.h"
#include "analysis/run_summary.h"

namespace frazil {

// Requires: at least one phase.
std::string draw_phase_table(const RunSummary& run);
// Draws one phase. Takes the spans it draws from `spans_left`, those that the page has left; if
// they are too few, its time lines are left out.
std::string draw_phase(const ReportPhase& phase, std::size_t number, std::size_t& spans_left);

}  // namespace frazil
