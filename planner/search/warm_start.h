#pragma once
// The warm start of a search: good plans to begin with, so that what is worse need not be opened.
// They come from the cells with the lowest bounds, then from cells near the best plan so far. They
// change no answer of a search that ends when its answer is proven.

#include <cstddef>
#include <vector>

#include "planner/search/evaluate.h"
#include "planner/search/variants.h"

namespace frazil {

struct PromisingShape {
  Shape shape;
  std::size_t ordinal = 0;  // among the variants of its cell
  NamedBound bound;         // the larger of that of the evaluator and that of its order of work
};

// Returns the cells with the lowest bounds, one of each group length, as far as memory does not
// rule them out; four cells at most.
std::vector<ShapeCell> pick_cells(Evaluator& evaluator, const std::vector<ShapeCell>& cells);

// Returns cells near this one, all with groups of one length (the cell itself is one of them only
// if its own are). Their groups are as long, one device longer or shorter, half or twice as long;
// they are as many, one fewer, half of what fits, all that fit or one fewer. The size of
// micro-batches is the cell's or the next in the search's list either way. Requires: the cell's
// size is in that list.
std::vector<ShapeCell> list_neighbours(const ShapeCell& cell, const SearchSpace& space);

// Returns, by ascending bound, variants of these cells at the schedule's own depth that may take no
// longer than `most`: of each schedule the one with the lowest bound, or the three lowest where
// groups are not alike. What the bound by the order of work rejects, or knows nothing of, is left
// out.
std::vector<PromisingShape> find_promising(Evaluator& evaluator, Variants& variants,
                                           const std::vector<ShapeCell>& cells, Duration most);

}  // namespace frazil
