#pragma once
// Makes the report of runs: one self-contained HTML page that needs no network and no script. It
// shows predicted above measured time lines per phase, the freeze staircase, throughput and loss
// over time, and tables.

#include <string>
#include <vector>

#include "analysis/report_run.h"

namespace frazil {

// `notes`: lines shown under the title (flags: extrapolated costs, costs split by rule, ...).
std::string to_html(const std::string& title, const std::vector<std::string>& notes,
                    const std::vector<ReportRun>& runs);

}  // namespace frazil
