#pragma once
// A SearchNode is a part of what is left to search: a cell, the cells between it and the next
// longer one, the variants of a cell that share a class, or one shape. A shape is bounded by the
// shares of its groups, then by its cuts, at last by its order of work.

#include <cstdint>
#include <set>

#include "planner/bounds/work_bound.h"
#include "planner/search/variants.h"

namespace frazil {

struct SearchNode {
  enum class Kind : std::uint8_t { kCell, kLonger, kClass, kShared, kCut, kOrdered };

  NamedBound bound;
  int devices = 0;  // stages in all, at least
  int stages = 0;   // of a pipeline, at least
  Kind kind = Kind::kCell;
  Shape shape;               // the cell; for a class with its first variant
  std::int64_t ordinal = 0;  // for a shape: where listing everything would meet it

  bool is_shape() const { return kind >= Kind::kShared; }
  bool operator<(const SearchNode& other) const;  // for a heap with the lowest bound in front
};

SearchNode make_cell_node(SearchNode::Kind kind, const ShapeCell& cell, const NamedBound& bound);
SearchNode make_shape_node(const Shape& shape, std::size_t ordinal, const NamedBound& bound);

// Returns how many groups may have a device more in a cell whose groups are equally long.
int most_longer(const ShapeCell& cell, const SearchSpace& space);
std::int64_t count_variants(Variants& variants, const ShapeCell& cell);
// Returns how many shapes of a node are not judged yet.
std::int64_t count_shapes(const SearchNode& node, const SearchSpace& space, Variants& variants,
                          const std::set<Shape>& judged);

}  // namespace frazil
