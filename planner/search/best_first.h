#pragma once
// Branch and bound over the shapes of a search. What is left is kept in order of its lower bound:
// cells, then the variants of a cell that have a bound in common, then single shapes. The node with
// the lowest bound is opened, or simulated if it is a single shape, while it could still be among
// the best plans (the incumbents); whatever remains then is rejected by its bound. So the best
// plans are those of simulating everything, in the same order. With a held plan the search
// minimizes steps x makespan + transition time; for a node this is at least steps x its bound.

#include "planner/search/evaluate.h"

namespace frazil {

// Returns the `options.keep` best plans that fit; if none fits, the one that misses least. All
// other plans are in `rejected`, or in `left` if the search ended before it looked at them.
Ranking search_best_first(Evaluator& evaluator, const SearchOptions& options);

// Simulates the whole plan of every shape and ranks all of them.
Ranking search_exhaustively(Evaluator& evaluator);

// Whether some plan fits, and if none does, how much the shape that misses least lacks by its bound
// or simulated; zero if an interpreter refuses all of them.
struct Fit {
  bool some_plan = false;
  Bytes missing;
};
// Ends at the first plan that fits.
Fit find_fit(Evaluator& evaluator, const SearchOptions& options);

}  // namespace frazil
