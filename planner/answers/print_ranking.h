#pragma once
// Prints answers about many plans beside each other, for people (a table) and for programs (one
// JSON object).

#include <string>

#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

// Returns the first `top` feasible candidates, then the first `top` infeasible ones with their
// reasons: too little memory, or no interpreter makes them. These two are counted apart, and so are
// the candidates that a search left out by their bounds. In the table, candidates that differ only
// in the name of the schedule share a row, and devices are listed if pipelines take them in another
// order than the cluster lists them. `more`: a JSON object whose members are added.
std::string print_ranking(const Ranking& ranking, Setting setting, int top);
std::string ranking_json(const Ranking& ranking, Setting setting, int top,
                         const std::string& more = "{}");

}  // namespace frazil
