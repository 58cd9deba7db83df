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
  NamedBound bound;         // from its order of work
};

// Returns the cells with the lowest bounds, one of each group length, as far as memory does not
// rule them out; four cells at most.
std::vector<ShapeCell> pick_cells(Evaluator& evaluator, const std::vector<ShapeCell>& cells);

// Returns the cell itself and its neighbours: somewhat shorter or longer groups, fewer groups,
// smaller or larger micro-batches.
std::vector<ShapeCell> list_neighbours(const ShapeCell& cell, const SearchSpace& space);

// Returns, for each schedule at its own depth, the few variants of these cells that have the lowest
// bounds and may take no longer than `most`; the variant with the lowest bound by its order of work
// comes first.
std::vector<PromisingShape> find_promising(Evaluator& evaluator, Variants& variants,
                                           const std::vector<ShapeCell>& cells, Duration most);

}  // namespace frazil
