#pragma once
// Makes the report of runs: one self-contained HTML page that needs no network and says everything
// without its script. It shows predicted above measured time lines per phase and where their time
// went, the freeze staircase, throughput and loss over time, and tables.

#include <string>
#include <vector>

#include "analysis/report_run.h"

namespace frazil {

// `notes`: lines shown under the title, before those that the runs have themselves. Files beside
// the page are linked if the runs name them, relative to the page.
std::string to_html(const std::string& title, const std::vector<std::string>& notes,
                    const std::vector<ReportRun>& runs);

}  // namespace frazil
