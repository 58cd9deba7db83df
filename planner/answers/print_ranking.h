#pragma once
// Prints a ranking of plans as a table for people. planner/answers/ranking_json.h tells it to
// programs.

#include <string>

#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

// Returns the first `top` feasible candidates, then the first `top` infeasible ones with their
// reasons: too little memory, or no interpreter makes them. These two are counted apart, and so are
// the candidates that a search left out by their bounds. In the table, candidates that differ only
// in the name of the schedule share a row, and devices are listed if pipelines take them in another
// order than the cluster lists them.
std::string print_ranking(const Ranking& ranking, Setting setting, int top);

}  // namespace frazil
