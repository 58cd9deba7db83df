#pragma once
// Branch and bound over the shapes of a search. What is left is kept in order of its lower bound:
// cells, then the variants of a cell that have a bound in common, then single shapes. The one with
// the lowest is opened, or simulated when it is a single shape, while it could still be among the
// best; whatever remains then is rejected by its bound. So the best are those of simulating
// everything, in the same order. With a held plan what is kept low is steps x makespan + switching;
// of a node that is at least steps x its bound.

#include "planner/search/evaluate.h"

namespace frazil {

// The `options.keep` best, feasible ones first; where fewer are feasible also the infeasible ones
// that miss least. Everything else in `rejected`.
Ranking search_best_first(Evaluator& evaluator, const SearchOptions& options);

// Every shape, its whole plan simulated.
Ranking search_exhaustively(Evaluator& evaluator);

// Whether some plan fits; ends at the first.
bool some_plan_fits(Evaluator& evaluator, const SearchOptions& options);

}  // namespace frazil
