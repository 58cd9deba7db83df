#pragma once
// Answers what a run cost, for people and for programs.

#include <string>
#include <vector>

#include "analysis/run_summary.h"

namespace frazil {

// Returns what a reader has to know before the numbers: other programs that kept the machine busy,
// samples that do not stand for their phase, doubts of the profile behind the predictions.
std::vector<std::string> list_notes(const RunSummary& run);

// Returns a table of the phases under one line of totals and the notes, then where the time went
// and a table of memory, as far as phases have them.
std::string to_text(const RunSummary& run);
std::string to_json(const std::vector<RunSummary>& runs);

}  // namespace frazil
