#pragma once
// The end of a search with a cut effort: looks for faster cuts by simulated time
// (planner/search/cut_search.h). First the plans that were kept, best first, move their boundaries.
// Then each shape that may still hold a plan faster than the best, the shape with the lowest bound
// first, is searched for one. The plans that are found take their place among the kept ones.

#include <cstdint>
#include <vector>

#include "planner/search/evaluate.h"
#include "planner/search/incumbents.h"
#include "planner/search/rejections.h"

namespace frazil {

// A shape whose proposals were looked at. Other cuts may be faster than these.
struct OpenShape {
  Shape shape;
  std::int64_t ordinal = 0;  // where listing everything would meet it
  Duration at_least{0};      // whatever its cuts
};

// Returns what was found; its at_least speaks of the open shapes and of the best plan alone. With a
// held plan (SearchOptions) both the cuts that were proposed and the faster ones are kept, for the
// transition to them may cost more. If no plan is kept, the shapes are searched for one that fits.
SearchedCuts search_cuts(Evaluator& evaluator, const SearchOptions& options,
                         std::vector<OpenShape> open, Incumbents& kept, Rejections& rejected);

}  // namespace frazil
