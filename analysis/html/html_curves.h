#pragma once
// Draws the course of training for the report page: the curves of all runs laid over each other,
// and which blocks each of them froze when.

#include <string>
#include <vector>

#include "analysis/report_run.h"
#include "analysis/run_summary.h"

namespace frazil {

// `summaries` are those of `runs`, in the same order.
std::string draw_curves(const std::vector<ReportRun>& runs,
                        const std::vector<RunSummary>& summaries);

}  // namespace frazil
