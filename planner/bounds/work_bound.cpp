#include "planner/bounds/work_bound.h"

#include <algorithm>

#include "planner/plan/schedule_facts.h"
#include "profiles/processes.h"

namespace frazil {
namespace {

constexpr VariantClass kLeast{.one_stage_per_device = false, .one_way = false, .splits = true};
__extension__ using Wide = __int128;

}  // namespace

WorkBounds::WorkBounds(const SearchSpace& space, const DeviceGroupClasses& device_classes,
                       const Cluster& cluster)
    : space_(space),
      deals_(space, device_classes),
      device_(device_classes.best_device()),
      link_(device_classes.best_link()) {
  std::vector<std::int64_t> slowdowns;
  for (const Device& device : cluster.devices) slowdowns.push_back(device.time_ppm);
  std::sort(slowdowns.begin(), slowdowns.end());
  speed_.push_back(0);
  for (const std::int64_t ppm : slowdowns) {
    rounds_ = rounds_ || ppm != kMillion;
    speed_.push_back(speed_.back() + divide_up(kMillion * kMillion, std::int64_t{ppm}));
  }
  least_speed_ = kMillion * kMillion / slowdowns.back();
  const std::vector<ScheduleKind>& schedules = space.options.schedules;
  const bool all_commit = std::all_of(
      schedules.begin(), schedules.end(),
      [](ScheduleKind schedule) { return facts_of(schedule).versions == WeightVersions::kSync; });
  if (all_commit && tells_processes(cluster)) commit_round_ = commit_round_of(cluster);
  largest_process_ = count_in_largest_process(cluster);
}

// The round comes between the last work and reduction of any device and the first update of any.
Duration WorkBounds::commit_round(const ChainSums& sums, int devices) const {
  const bool commits = devices > largest_process_ && sums.has_update({0, sums.layers()});
  return commits ? commit_round_ : kNoTime;
}

NamedBound WorkBounds::with_commit(NamedBound bound, const ChainSums& sums,
                                   const ShapeCell& cell) const {
  if (bound.time < kNever) bound.time += commit_round(sums, cell.used());
  return bound;
}

Duration WorkBounds::rounding(std::int64_t actions) const {
  return Duration{rounds_ ? actions : 0};
}

// Returns the work and the reductions of all groups / the speed of the fastest devices used. F, I
// and W of a stage are each rounded down to whole ns.
Duration WorkBounds::total_work(const ChainSums& sums, const ShapeCell& cell,
                                const GroupTime& group) const {
  const std::int64_t m = whole_micro_batches(sums.micro_batch_size());
  const Wide work = static_cast<Wide>(sums.least_work(false).count()) * m * kMillion;
  // A reducing device does no work meanwhile, and the slowest device would have done the least.
  const Wide others = static_cast<Wide>(group.reductions.count()) * cell.replicas * least_speed_;
  const int devices = std::min(space_.devices, cell.used());
  const auto time =
      static_cast<std::int64_t>((work + others) / speed_[static_cast<std::size_t>(devices)]);
  return Duration{time} - rounding(3 * m * sums.layers() / devices + 1);
}

// Returns the reductions of a group, added up over its devices: each layer is reduced by one
// device, or by two if the schedule runs both ways.
Duration WorkBounds::all_reductions(const ChainSums& sums, const ShapeCell& cell,
                                    const BatchDeal& deal) const {
  const Bytes bytes = sums.updated_parameters({0, sums.layers()});
  return deal.ways * reduction(bytes, deal.ways * cell.replicas, deal.nodes);
}

Duration WorkBounds::path_before(const ChainSums& sums, int first) const {
  const Duration path = scale_ppm(sums.least_head(first), device_.time_ppm);
  return std::max(kNoTime, path - rounding(sums.layers()));
}

Duration WorkBounds::path_after(const ChainSums& sums, const VariantClass& variant,
                                int first) const {
  if (variant.splits) return kNoTime;
  const Duration path = scale_ppm(sums.least_tail(first), device_.time_ppm);
  return std::max(kNoTime, path - rounding(sums.layers()));
}

// Adds up the paths of all devices. Stage d is the first on device d, or with two directions on
// device d or on its mirror image, and begins at layer d or later.
Duration WorkBounds::all_paths(const ChainSums& sums, const VariantClass& variant, int ways,
                               int devices) const {
  Duration sum{0};
  for (int d = 0; d < std::min(devices, sums.layers()); ++d) {
    const int first = ways == 1 ? d : std::min(d, devices - 1 - d);
    sum += sums.least_head(first);
    if (!variant.splits) sum += sums.least_tail(first);
  }
  return std::max(kNoTime,
                  scale_ppm(sum, device_.time_ppm) - rounding(2 * devices * sums.layers()));
}

WorkBounds::GroupTime WorkBounds::time_of_group(const ChainSums& sums, const ShapeCell& cell,
                                                const VariantClass& variant, const BatchDeal& deal,
                                                int devices, bool one_way) const {
  const Duration work = scale_ppm(sums.least_work(variant.recompute), device_.time_ppm);
  const ChainSums::Pigeonhole& pigeonhole = sums.pigeonhole(devices, one_way, variant.recompute);
  const auto load = [&](const ChainSums::Load& own) {
    const Duration share = scale_ppm(own.work, device_.time_ppm) - rounding(4 * sums.layers());
    return GroupTime::Load{
        std::max(kNoTime, share),
        reduction(own.updated_parameters, deal.ways * cell.replicas, deal.nodes)};
  };
  GroupTime::Load even = load(pigeonhole.even);
  const int last = pigeonhole.holders - 1;
  // The path after the last backward hides its reduction.
  even.once = std::max(even.once, path_after(sums, variant, one_way ? last : last / 2)) +
              path_before(sums, one_way ? last : last / 2);
  return {.devices = devices,
          .one = load(pigeonhole.one),
          .even = even,
          .more = load(pigeonhole.more),
          .work = std::max(kNoTime, work - rounding(4 * sums.layers())),
          .paths = all_paths(sums, variant, one_way ? 1 : 2, devices),
          .reductions = all_reductions(sums, cell, deal)};
}

Duration WorkBounds::GroupTime::at_least(std::int64_t micro_batches) const {
  if (micro_batches == 0) return reductions / devices;
  return std::max({one.at_least(micro_batches),
                   std::min(even.at_least(micro_batches), more.at_least(micro_batches)),
                   (work * micro_batches + reductions + paths) / devices});
}

std::int64_t WorkBounds::GroupTime::Load::most_within(Duration time, std::int64_t most) const {
  if (time < once) return 0;
  return share.count() > 0 ? std::min(most, (time - once) / share) : most;
}

std::int64_t WorkBounds::GroupTime::most_within(Duration time, std::int64_t most) const {
  most = std::min(one.most_within(time, most),
                  std::max(even.most_within(time, most), more.most_within(time, most)));
  // (work n + paths + reductions) / devices <= time, rounded down.
  const Duration room = (time + Duration{1}) * devices - Duration{1} - paths - reductions;
  if (room < kNoTime) return 0;
  return work.count() > 0 ? std::min(most, room / work) : most;
}

// Searches the least n with which groups of the one kind can take n micro-batches each while those
// of the other kind take the others. Before that time the first take n - 1 at most.
Duration WorkBounds::time_to_share(std::int64_t micro_batches, const GroupTime& own,
                                   std::int64_t own_groups, const GroupTime& other,
                                   std::int64_t other_groups) {
  if (micro_batches == 0) return kNoTime;
  std::int64_t too_few = 0;
  std::int64_t enough = divide_up(micro_batches, own_groups);
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    const std::int64_t left = micro_batches - middle * own_groups;
    const bool fits = other.most_within(own.at_least(middle), micro_batches) * other_groups >= left;
    (fits ? enough : too_few) = middle;
  }
  const std::int64_t left = micro_batches - too_few * own_groups;
  return std::min(own.at_least(enough), other.at_least(divide_up(left, other_groups)));
}

Duration WorkBounds::least_time(const ChainSums& sums, const ShapeCell& cell,
                                const VariantClass& variant, const BatchDeal& deal) const {
  const int m = whole_micro_batches(sums.micro_batch_size());
  const int some_longer = cell.longer > 0 ? 1 : 0;
  const bool one_way = deal.ways == 1;
  const GroupTime longest =
      time_of_group(sums, cell, variant, deal, cell.devices + some_longer, one_way);
  const GroupTime shortest = time_of_group(sums, cell, variant, deal, cell.devices, one_way);
  // Either length may give the least time, for a longer group may have longer paths.
  Duration time =
      std::min(longest.at_least(deal.micro_batches), shortest.at_least(deal.micro_batches));
  if (cell.longer > 0) {
    time =
        std::max({time, shortest.at_least(0),
                  time_to_share(m, shortest, cell.replicas - cell.longer, longest, cell.longer)});
  }
  return std::max(time, total_work(sums, cell, shortest));
}

NamedBound WorkBounds::bound(const ChainSums& sums, const ShapeCell& cell) const {
  return with_commit(bound_work(sums, cell), sums, cell);
}

NamedBound WorkBounds::bound_work(const ChainSums& sums, const ShapeCell& cell) const {
  Duration least = kNever;
  for (const BatchDeal& deal : deals_.list(cell)) {
    least = std::min(least, least_time(sums, cell, kLeast, deal));
  }
  if (cell.longer > 0) least = std::min(least, least_time_of_even(sums, cell, kLeast));
  return {std::max(kNoTime, least), "total-work"};
}

NamedBound WorkBounds::bound_longer(const ChainSums& sums, const ShapeCell& cell) const {
  ShapeCell longest = cell;
  longest.longer = std::max(1, std::min(cell.replicas - 1, space_.devices - cell.used()));
  NamedBound least = bound_work(sums, longest);
  ShapeCell shortest = cell;
  shortest.longer = 1;  // with the most groups that have an even number of devices
  if (cell.devices % 2 == 0) {
    least.time = std::min(least.time, least_time_of_even(sums, shortest, kLeast));
  }
  return with_commit(least, sums, shortest);
}

Duration WorkBounds::reduction(Bytes bytes, int owners, int nodes) const {
  if (owners < 2 || bytes.count == 0 || space_.options.overlap) return kNoTime;
  const std::int64_t steps = static_cast<std::int64_t>(owners) - 1;
  const Bytes share{divide_up<std::int64_t>(bytes.count, owners)};
  return 2 * steps * link_.latency + share * (steps * (nodes + 1)) / link_.bandwidth;
}

bool WorkBounds::some_cut_keeps(const ChainSums& sums, const ShapeCell& cell,
                                const VariantClass& variant, const BatchDeal& deal,
                                Duration most) const {
  const int stages = cell.devices + (cell.longer > 0 ? 1 : 0);
  const std::int64_t n = deal.micro_batches;
  const Duration slack = rounding(sums.layers());
  const auto path = [&](Duration time) {
    return std::max(kNoTime, scale_ppm(time, device_.time_ppm) - slack);
  };
  const auto load = [&](LayerSpan span) {
    const SpanTimes times = sums.times(span, device_, variant.recompute);
    const Duration backward =
        variant.splits ? std::min(times.backward, times.input + times.weight) : times.backward;
    const Duration after = reduction(sums.updated_parameters(span), cell.replicas, deal.nodes) +
                           sums.update(span, device_);
    const Duration tail = variant.splits ? kNoTime : path(sums.tail(span.first, false));
    Duration time = (times.forward + times.recompute + backward) * n + std::max(tail, after);
    if (variant.splits) {
      time = std::max(time, (times.forward + times.recompute + times.input) * n +
                                path(sums.tail(span.first, true)));
    }
    return path(sums.head(span.first)) + time;
  };
  int first = 0;
  for (int s = 0; s < stages && first < sums.layers(); ++s) {
    int fits = first;
    int too_long = sums.layers() + 1;
    while (fits + 1 < too_long) {
      const int end = fits + (too_long - fits) / 2;
      (load({first, end}) <= most ? fits : too_long) = end;
    }
    if (fits == first) return false;
    first = fits;
  }
  return first == sums.layers();
}

bool WorkBounds::keeps(const ChainSums& sums, const ShapeCell& cell, const VariantClass& variant,
                       const BatchDeal& deal, Duration most) const {
  const int stages = cell.devices + (cell.longer > 0 ? 1 : 0);
  KnownTimes& known = known_cuts_[{sums.micro_batch_size(), stages, cell.replicas, deal, variant}];
  if (most <= known.too_short) return false;
  if (most >= known.enough) return true;
  const bool kept = some_cut_keeps(sums, cell, variant, deal, most);
  (kept ? known.enough : known.too_short) = most;
  return kept;
}

Duration WorkBounds::best_cut(const ChainSums& sums, const ShapeCell& cell,
                              const VariantClass& variant, const BatchDeal& deal, Duration least,
                              Duration most) const {
  const auto kept = [&](Duration time) { return keeps(sums, cell, variant, deal, time); };
  if (least >= most || kept(least)) return least;
  if (most < kNever && !kept(most)) return most + Duration{1};
  Duration below = least;
  Duration enough = below + Duration{1};
  while (!kept(enough)) {
    below = enough;
    enough += enough;
  }
  while (enough - below > Duration{1} && (enough - below) * 256 > enough) {
    const Duration middle = below + (enough - below) / 2;
    (kept(middle) ? enough : below) = middle;
  }
  return below + Duration{1};
}

Duration WorkBounds::least_time_of_even(const ChainSums& sums, const ShapeCell& cell,
                                        const VariantClass& variant) const {
  const bool longer_are = cell.devices % 2 != 0;
  const int groups = longer_are ? cell.longer : cell.replicas - cell.longer;
  const BatchDeal deal{divide_up(whole_micro_batches(cell.micro_batch_size), groups), 1, 1};
  return time_of_group(sums, cell, variant, deal, cell.devices + (longer_are ? 1 : 0), false)
      .at_least(deal.micro_batches);
}

NamedBound WorkBounds::bound(const ChainSums& sums, const ShapeCell& cell,
                             const VariantClass& variant, Duration most) const {
  return with_commit(bound_work(sums, cell, variant, most), sums, cell);
}

NamedBound WorkBounds::bound_work(const ChainSums& sums, const ShapeCell& cell,
                                  const VariantClass& variant, Duration most) const {
  if (!variant.one_way && cell.longer > 0) {
    return {std::max(kNoTime, least_time_of_even(sums, cell, variant)), "total-work"};
  }
  NamedBound least{kNever, "total-work"};
  for (const BatchDeal& deal : deals_.list(cell, variant.one_way ? 1 : 2)) {
    NamedBound own{std::max(kNoTime, least_time(sums, cell, variant, deal)), "total-work"};
    if (variant.one_stage_per_device) {
      const Duration cut = best_cut(sums, cell, variant, deal, own.time, most);
      if (cut > own.time) own = {cut, "best-cut"};
    }
    if (own.time < least.time) least = own;
  }
  return least;
}

NamedBound WorkBounds::bound_group(const ChainSums& sums, const ShapeCell& cell,
                                   const VariantClass& variant, const BatchDeal& deal,
                                   const Cluster& group_cluster) const {
  const auto devices = static_cast<int>(group_cluster.devices.size());
  const GroupTime group = time_of_group(sums, cell, variant, deal, devices, variant.one_way);
  // The mean is over the group's own devices, at the speed that they have together.
  Wide speed = 0;
  for (const Device& device : group_cluster.devices) {
    speed += divide_up(kMillion * kMillion, std::int64_t{device.time_ppm});
  }
  const Wide work = static_cast<Wide>(group.work.count()) * deal.micro_batches *
                    (kMillion * kMillion / device_.time_ppm);
  const Duration mean{static_cast<std::int64_t>(work / speed)};
  const Duration least = std::max({kNoTime, mean, group.at_least(deal.micro_batches)});
  return with_commit({least, "total-work"}, sums, cell);
}

Bytes WorkBounds::least_memory(const ChainSums& sums, const ShapeCell& cell) const {
  const LayerSpan all{0, sums.layers()};
  const Bytes held = sums.parameters(all) + sums.updated_parameters(all) + sums.optimizer(all);
  const int devices = cell.devices + (cell.longer > 0 ? 1 : 0);
  return Bytes{divide_up<std::int64_t>(held.count, devices)};
}

}  // namespace frazil
