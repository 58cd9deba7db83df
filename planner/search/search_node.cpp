#include "planner/search/search_node.h"

#include <algorithm>
#include <tuple>

#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

// Counts the judged shapes of a cell, which are neighbours in the set.
template <class Condition>
std::int64_t count_judged(const std::set<Shape>& judged, const ShapeCell& cell,
                          Condition condition) {
  std::int64_t count = 0;
  const Shape before_all{cell, {.arrangement = -1}};
  for (auto at = judged.lower_bound(before_all); at != judged.end() && at->cell == cell; ++at) {
    if (condition(at->variant)) ++count;
  }
  return count;
}

std::int64_t count_class(const SearchNode& node, Variants& variants,
                         const std::set<Shape>& judged) {
  const VariantClass wanted = class_of(node.shape.variant);
  for (const VariantList::Class& own : variants.of(node.shape.cell).classes) {
    if (own.what != wanted) continue;
    return own.variants - count_judged(judged, node.shape.cell, [&](const ShapeVariant& variant) {
             return class_of(variant) == wanted;
           });
  }
  return 0;
}

std::int64_t count_longer(const ShapeCell& cell, const SearchSpace& space, Variants& variants) {
  const int more = most_longer(cell, space);
  if (more == 0) return 0;
  ShapeCell longer = cell;
  longer.longer = 1;
  return more * count_variants(variants, longer);
}

}  // namespace

bool SearchNode::operator<(const SearchNode& other) const {
  const auto key = [](const SearchNode& node) {
    return std::tie(node.bound.time, node.devices, node.stages, node.shape, node.kind);
  };
  return key(other) < key(*this);
}

int most_longer(const ShapeCell& cell, const SearchSpace& space) {
  if (cell.devices + 1 > space.most_group_devices()) return 0;
  return std::max(0, std::min(cell.replicas - 1, space.devices - cell.used()));
}

SearchNode make_cell_node(SearchNode::Kind kind, const ShapeCell& cell, const NamedBound& bound) {
  return {.bound = bound,
          .devices = cell.used(),
          .stages = cell.devices,
          .kind = kind,
          .shape = {cell, {}},
          .ordinal = 0};
}

SearchNode make_shape_node(const Shape& shape, std::size_t ordinal, const NamedBound& bound) {
  const ShapeVariant& variant = shape.variant;
  return {.bound = bound,
          .devices =
              shape.cell.used() * variant.chunks * directions(facts_of(variant.schedule).placement),
          .stages = shape.cell.devices * variant.chunks,
          .kind = SearchNode::Kind::kShared,
          .shape = shape,
          .ordinal = static_cast<std::int64_t>(ordinal)};
}

std::int64_t count_variants(Variants& variants, const ShapeCell& cell) {
  return static_cast<std::int64_t>(variants.of(cell).variants.size());
}

std::int64_t count_shapes(const SearchNode& node, const SearchSpace& space, Variants& variants,
                          const std::set<Shape>& judged) {
  switch (node.kind) {
    case SearchNode::Kind::kShared:
    case SearchNode::Kind::kCut:
    case SearchNode::Kind::kOrdered:
      return 1;
    case SearchNode::Kind::kCell:
      return count_variants(variants, node.shape.cell) -
             count_judged(judged, node.shape.cell, [](const ShapeVariant&) { return true; });
    case SearchNode::Kind::kClass:
      return count_class(node, variants, judged);
    case SearchNode::Kind::kLonger:
      return count_longer(node.shape.cell, space, variants);
  }
  return 0;
}

}  // namespace frazil
