#pragma once
// The report of a run: one self-contained HTML page, no network, no script needed. Predicted above
// measured time lines per phase, the freeze staircase, throughput and loss over time, tables.

#include <string>
#include <vector>

#include "analysis/report_run.h"

namespace frazil {

// `notes`: lines shown under the title (flags: extrapolated costs, costs split by rule, ...).
std::string to_html(const std::string& title, const std::vector<std::string>& notes,
                    const std::vector<ReportRun>& runs);

}  // namespace frazil
