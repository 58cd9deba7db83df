#pragma once
// Tells what a ranking proves: no plan of the searched space takes less than a bound, which is the
// time of the best plan where the search could close every other plan; and what that space is, for
// a bound says nothing about plans beyond it.

#include <string>

#include "planner/bounds/search_options.h"
#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

// True if the ranking has a bound that its searched space cannot beat.
bool has_proof(const Ranking& ranking);

// Returns how far a makespan lies above the bound of the searched space: "0.00 %" only where it is
// the bound, "< 0.01 %" for what rounding would hide; "-" if there is no such bound, or if the plan
// lies outside that space and below it.
std::string print_gap(const Ranking& ranking, Duration makespan);

// Returns the proof and the space, a line each, and between them a line if the plans beside the
// fastest are not proven the next best; empty if nothing fits or the search did not look for
// cuts. Requires: the options are those of the search.
std::string print_proof(const Ranking& ranking, const SearchOptions& options, Setting setting);
// Returns the members "at_least_ns", "proven", "only_fastest_proven" and "searched_space" as one
// object; {} as above.
std::string proof_json(const Ranking& ranking, const SearchOptions& options, Setting setting);

}  // namespace frazil
