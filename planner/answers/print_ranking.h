#pragma once
// Answers about many plans beside each other, for people (a table) and for programs (one JSON
// object).

#include <string>

#include "planner/prediction/ranking.h"

namespace frazil {

// The first `top` feasible candidates, then the first `top` infeasible ones with their reasons:
// too little memory, or no interpreter makes them; the two are counted apart, as are those that a
// search left out by their bounds. In the table candidates that differ in the schedule's name alone
// are one row, and devices are listed where pipelines take them in another order. `more`: a JSON
// object whose members are added.
std::string print_ranking(const Ranking& ranking, const Cluster& cluster,
                          const ModelProfile& profile, int top);
std::string ranking_json(const Ranking& ranking, const Cluster& cluster,
                         const ModelProfile& profile, int top, const std::string& more = "{}");

}  // namespace frazil
