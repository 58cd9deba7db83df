#pragma once
// Tells a ranking of plans to programs, as one JSON object. planner/answers/print_ranking.h tells
// it to people.

#include <string>

#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

// Returns the first `top` feasible candidates, then the first `top` infeasible ones with their
// reasons. `more`: a JSON object whose members are added. docs/commands.md lists the fields.
std::string ranking_json(const Ranking& ranking, Setting setting, int top,
                         const std::string& more = "{}");

}  // namespace frazil
