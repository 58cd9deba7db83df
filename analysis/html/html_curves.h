#pragma once
// The course of training, for the report page: the curves of all runs laid over each other, and
// which blocks each of them froze when.

#include <string>
#include <vector>

#include "analysis/report_run.h"
#include "analysis/run_summary.h"

namespace frazil {

// `summaries`: of the same runs.
std::string draw_curves(const std::vector<ReportRun>& runs,
                        const std::vector<RunSummary>& summaries);

}  // namespace frazil
