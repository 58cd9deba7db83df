#include "planner/bounds/shape.h"

#include <algorithm>

#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

bool is_listed(const SearchOptions& options, ScheduleKind kind) {
  return std::find(options.schedules.begin(), options.schedules.end(), kind) !=
         options.schedules.end();
}

std::vector<int> list_chunks(const ScheduleFacts& facts, const ShapeCell& cell,
                             const SearchSpace& space) {
  const int longest = cell.devices + (cell.longer > 0 ? 1 : 0);
  const int limit = space.options.max_stages;
  const int most = limit > 0 ? std::min(space.layers, limit) : space.layers;
  std::vector<int> chunks;
  const auto add = [&](int v) {
    if (longest * v <= most) chunks.push_back(v);
  };
  const bool varies = facts.legal != ScheduleFacts::Chunks::kFixed;
  if (!varies || !space.options.joint || cell.devices == 1) {
    add(facts.chunks);
    return chunks;
  }
  for (const int v : {2, 3, 4, 6, 8}) {
    if (facts.legal == ScheduleFacts::Chunks::kAny || v % 2 == 0) add(v);
  }
  return chunks;
}

// True if the search varies the schedule's K: among schedules of the search that differ in their
// depth alone only that of the first one.
bool varies_depth(const ScheduleFacts& facts, const SearchOptions& options) {
  if (!has_linear_bounds(facts) || !facts.takes_in_flight) return false;
  for (const ScheduleFacts& other : all_schedules()) {
    if (other.kind == facts.kind) return true;
    if (other.bounds == facts.bounds && is_listed(options, other.kind)) return false;
  }
  return true;
}

// Returns the schedule's own K, and the depths under which other schedules of the list already run.
std::vector<int> known_depths(const ScheduleFacts& facts, int devices,
                              const SearchOptions& options) {
  std::vector<int> depths{facts.own_in_flight.on(devices)};
  for (const ScheduleFacts& other : all_schedules()) {
    if (other.bounds == facts.bounds && is_listed(options, other.kind)) {
      depths.push_back(other.own_in_flight.on(devices));
    }
  }
  return depths;
}

// Returns the K from which on every stage but the last begins with all forwards of a share
// (planner/orders/linear_orders.h).
std::int64_t most_depth(int devices, int share) {
  return 1 + (std::int64_t{share} - 1) * (devices - 1);
}

constexpr int kFew = 24;  // depths that are all taken

// Returns every depth up to `most` if these are few, else at most sixteen up to 2p.
std::vector<int> list_depths(std::int64_t most, int devices) {
  const int steps = most <= kFew ? static_cast<int>(most) : std::min(16, 2 * devices);
  const auto last = most <= kFew ? steps : 2 * devices;
  std::vector<int> depths;
  for (int i = 1; i <= steps; ++i) {
    const int depth = last * i / steps;
    if (depth <= most) depths.push_back(depth);
  }
  return depths;
}

std::vector<std::optional<int>> list_depths(const ScheduleFacts& facts, const ShapeCell& cell,
                                            const SearchSpace& space) {
  std::vector<std::optional<int>> depths{std::nullopt};
  const int p = cell.devices;
  if (!space.options.joint || !varies_depth(facts, space.options) || p == 1) return depths;
  const int share = divide_up(space.micro_batches(cell.micro_batch_size), cell.replicas);
  const auto known = known_depths(facts, p, space.options);
  for (const int depth : list_depths(most_depth(p, share), p)) {
    if (std::find(known.begin(), known.end(), depth) == known.end()) depths.emplace_back(depth);
  }
  return depths;
}

std::vector<bool> list_recomputes(const ScheduleFacts& facts, const SearchOptions& options) {
  if (facts.recomputes_itself) return {true};
  if (options.recompute) return {false, true};
  return {false};
}

std::vector<bool> list_cached(int chunks, const ShapeCell& cell, const SearchSpace& space) {
  const int longest = cell.devices + (cell.longer > 0 ? 1 : 0);
  const bool fits = space.cached > 0 && longest * chunks <= space.layers - space.cached + 1;
  if (fits) return {true, false};
  return {false};
}

}  // namespace

int SearchSpace::most_group_devices() const {
  return std::min({devices, layers, options.max_stages > 0 ? options.max_stages : devices});
}

int SearchSpace::most_replicas(int size) const {
  const int most = options.max_replicas > 0 ? options.max_replicas : devices;
  return std::min(most, micro_batches(size));
}

std::vector<ShapeCell> list_cells(const SearchSpace& space) {
  std::vector<ShapeCell> cells;
  for (int p = 1; p <= space.most_group_devices(); ++p) {
    for (const int size : space.options.micro_batch_sizes) {
      const int replicas = std::min(space.devices / p, space.most_replicas(size));
      for (int r = 1; r <= replicas; ++r) {
        cells.push_back({.devices = p, .replicas = r, .longer = 0, .micro_batch_size = size});
      }
    }
  }
  return cells;
}

std::vector<ShapeCell> list_longer(const ShapeCell& cell, const SearchSpace& space) {
  std::vector<ShapeCell> cells;
  if (!space.options.joint || cell.longer > 0 || cell.devices + 1 > space.most_group_devices()) {
    return cells;
  }
  ShapeCell next = cell;
  for (next.longer = 1; next.longer < cell.replicas && next.used() <= space.devices;) {
    cells.push_back(next);
    ++next.longer;
  }
  return cells;
}

std::int64_t reach_of_depths(int devices, int share) {
  return std::min<std::int64_t>(most_depth(devices, share), std::max(2 * devices, kFew + 1));
}

VariantClass class_of(const ShapeVariant& variant) {
  const ScheduleFacts& facts = facts_of(variant.schedule);
  const bool linear = facts.placement == Placement::kLinear && variant.chunks == 1;
  // A schedule that recomputes by itself does more work than stages that keep their stash.
  const bool recompute = variant.recompute && !facts.recomputes_itself;
  const bool one_way = directions(facts.placement) == 1;
  return {linear, one_way, facts.splits_backward, recompute, variant.cached};
}

std::vector<ShapeVariant> list_variants(const ShapeCell& cell, const SearchSpace& space) {
  std::vector<ShapeVariant> variants;
  for (const ScheduleKind kind : space.options.schedules) {
    const ScheduleFacts& facts = facts_of(kind);
    for (const int chunks : list_chunks(facts, cell, space)) {
      for (const std::optional<int> depth : list_depths(facts, cell, space)) {
        for (const bool recompute : list_recomputes(facts, space.options)) {
          for (const bool cached : list_cached(chunks, cell, space)) {
            for (int a = 0; a < space.arrangements; ++a) {
              variants.push_back({a, kind, chunks, depth, recompute, cached});
            }
          }
        }
      }
    }
  }
  return variants;
}

std::optional<Shape> find_shape(const Plan& plan) {
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  if (named == nullptr || plan.pipelines.empty() || plan.pipelines.front().stages.empty()) {
    return std::nullopt;
  }
  const auto ways = static_cast<std::size_t>(directions(facts_of(named->kind).placement));
  const auto devices_of = [&](const Pipeline& pipeline) {
    return static_cast<int>(pipeline.stages.size()) / named->chunks;
  };
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      if (stage.devices.size() != 1 || stage.layers.size() != 1) return std::nullopt;
    }
  }
  Shape shape;
  shape.cell.devices = devices_of(plan.pipelines.back());
  shape.cell.replicas = static_cast<int>(plan.pipelines.size() / ways);
  shape.cell.micro_batch_size = plan.micro_batch_size;
  for (std::size_t p = 0; p < plan.pipelines.size(); p += ways) {
    if (devices_of(plan.pipelines[p]) != shape.cell.devices) ++shape.cell.longer;
  }
  if (shape.cell.devices < 1 || shape.cell.longer >= shape.cell.replicas) return std::nullopt;
  const Stage& first = plan.pipelines.front().stages.front();
  shape.variant = {0,
                   named->kind,
                   named->chunks,
                   named->in_flight,
                   first.memory == MemoryPolicy::kRecompute,
                   plan.cache_frozen_prefix};
  return shape;
}

}  // namespace frazil
