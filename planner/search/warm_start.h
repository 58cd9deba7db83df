#pragma once
// Good plans for a search to begin with, so that what is worse need not be opened: from the cells
// with the lowest bounds, then from those near the best so far. They change no answer of a search
// that ends when its answer is proven.

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

// One of each length, those with the lowest bounds, as far as memory does not rule them out.
std::vector<ShapeCell> pick_cells(Evaluator& evaluator, const std::vector<ShapeCell>& cells);

// Somewhat shorter or longer groups, fewer of them, smaller or larger micro-batches; itself.
std::vector<ShapeCell> list_neighbours(const ShapeCell& cell, const SearchSpace& space);

// Of each schedule, at its own depth, the few variants of these cells with the lowest bounds: those
// that may take no longer than `most`, the lowest order of work first.
std::vector<PromisingShape> find_promising(Evaluator& evaluator, Variants& variants,
                                           const std::vector<ShapeCell>& cells, Duration most);

}  // namespace frazil
