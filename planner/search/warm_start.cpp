#include "planner/search/warm_start.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace frazil {
namespace {

bool is_lower(const PromisingShape& a, const PromisingShape& b) {
  return std::tie(a.bound.time, a.shape) < std::tie(b.bound.time, b.shape);
}

void add_variants(Evaluator& evaluator, Variants& variants, const ShapeCell& cell,
                  std::vector<PromisingShape>& shapes) {
  const VariantList& list = variants.of(cell);
  for (std::size_t v = 0; v < list.variants.size(); ++v) {
    const Shape shape{cell, list.variants[v]};
    if (shape.variant.in_flight) continue;
    if (!list.class_of[v].one_way && cell.devices % 2 != 0) continue;
    if (evaluator.device_classes().repeats(cell, shape.variant.arrangement)) continue;
    const auto bound = evaluator.bound(shape);
    if (const auto* own = std::get_if<NamedBound>(&bound)) shapes.push_back({shape, v, *own});
  }
}

}  // namespace

std::vector<ShapeCell> pick_cells(Evaluator& evaluator, const std::vector<ShapeCell>& cells) {
  constexpr std::size_t kLengths = 4;
  std::vector<std::pair<Duration, ShapeCell>> bounded;
  for (const ShapeCell& cell : cells) {
    const ChainSums& sums = evaluator.sums_of(cell.micro_batch_size);
    const Bytes needed = evaluator.work_bounds().least_memory(sums, cell);
    if (needed > evaluator.device_classes().best_device().memory_limit) continue;
    bounded.emplace_back(evaluator.work_bounds().bound(sums, cell).time, cell);
  }
  std::sort(bounded.begin(), bounded.end());
  std::set<int> lengths;
  std::vector<ShapeCell> picked;
  for (const auto& [time, cell] : bounded) {
    if (lengths.size() == kLengths) break;
    if (lengths.insert(cell.devices).second) picked.push_back(cell);
  }
  return picked;
}

std::vector<ShapeCell> list_neighbours(const ShapeCell& cell, const SearchSpace& space) {
  const std::vector<int>& sizes = space.options.micro_batch_sizes;
  const auto at = std::find(sizes.begin(), sizes.end(), cell.micro_batch_size) - sizes.begin();
  std::set<ShapeCell> cells;
  for (auto s = std::max<std::ptrdiff_t>(0, at - 1);
       s <= at + 1 && s < static_cast<std::ptrdiff_t>(sizes.size()); ++s) {
    const int size = sizes[static_cast<std::size_t>(s)];
    for (const int p :
         {cell.devices / 2, cell.devices - 1, cell.devices, cell.devices + 1, 2 * cell.devices}) {
      if (p < 1 || p > space.most_group_devices()) continue;
      const int most = std::min(space.devices / p, space.most_replicas(size));
      for (const int replicas : {most / 2, cell.replicas - 1, cell.replicas, most - 1, most}) {
        if (replicas >= 1 && replicas <= most) cells.insert({p, replicas, 0, size});
      }
    }
  }
  return {cells.begin(), cells.end()};
}

std::vector<PromisingShape> find_promising(Evaluator& evaluator, Variants& variants,
                                           const std::vector<ShapeCell>& cells, Duration most) {
  // What bounds leave out differs between schedules, and between devices that are not alike.
  const int of_schedule = evaluator.device_classes().groups_are_alike() ? 1 : 3;
  std::vector<PromisingShape> shapes;
  for (const ShapeCell& cell : cells) add_variants(evaluator, variants, cell, shapes);
  std::sort(shapes.begin(), shapes.end(), is_lower);
  std::map<ScheduleKind, int> taken;
  std::vector<PromisingShape> ordered;
  for (PromisingShape& shape : shapes) {
    if (shape.bound.time > most) break;
    if (++taken[shape.shape.variant.schedule] > of_schedule) continue;
    const auto bound = evaluator.bound_by_order(shape.shape, most);
    if (!bound || std::holds_alternative<Rejection>(*bound)) continue;
    const NamedBound& own = std::get<NamedBound>(*bound);
    if (own.time > shape.bound.time) shape.bound = own;
    if (shape.bound.time <= most) ordered.push_back(shape);
  }
  std::sort(ordered.begin(), ordered.end(), is_lower);
  return ordered;
}

}  // namespace frazil
