#pragma once
// Prints what a check of a run has found, for people and for programs.

#include <string>

#include "analysis/check/check_run.h"

namespace frazil {

// Returns a table of the parts, then notes and problems, each a line, then the verdict.
std::string print_check(const RunCheck& check);
// Returns {"agrees": true, "steps": 40, "parts": {..}, "checkpoints": [..], "notes": [..],
// "problems": [..]}.
std::string check_json(const RunCheck& check);

}  // namespace frazil
