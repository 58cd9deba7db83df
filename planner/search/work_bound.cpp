#include "planner/search/work_bound.h"

#include <algorithm>

#include "planner/schedule_menu.h"

namespace frazil {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr Duration kNone{0};
__extension__ using Wide = __int128;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

VariantClass class_of(const ShapeVariant& variant) {
  const bool linear =
      family_of(variant.schedule).placement == Placement::kLinear && variant.chunks == 1;
  // Where varuna recomputes, it does more than a stage that keeps its stash.
  const bool recompute = variant.recompute && variant.schedule != ScheduleKind::kVaruna;
  const bool one_way = directions(family_of(variant.schedule).placement) == 1;
  return {linear, one_way, splits_backward(variant.schedule), recompute};
}

WorkBounds::WorkBounds(const SearchSpace& space, const Machines& machines, const Cluster& cluster)
    : space_(space), device_(machines.best_device()), link_(machines.best_link()) {
  std::vector<std::int64_t> slowdowns;
  for (const Device& device : cluster.devices) slowdowns.push_back(device.time_ppm);
  std::sort(slowdowns.begin(), slowdowns.end());
  speed_.push_back(0);
  for (const std::int64_t ppm : slowdowns) {
    rounds_ = rounds_ || ppm != kMillion;
    speed_.push_back(speed_.back() + (kMillion * kMillion + ppm - 1) / ppm);
  }
  least_speed_ = kMillion * kMillion / slowdowns.back();
}

Duration WorkBounds::rounding(std::int64_t actions) const {
  return Duration{rounds_ ? actions : 0};
}

// F, I and W of a stage are each rounded down to whole ns.
Duration WorkBounds::total_work(const ChainSums& sums, const ShapeCell& cell, int devices) const {
  const LayerSpan all{0, sums.layers()};
  const std::int64_t m = whole_micro_batches(sums.micro_batch_size());
  const Wide work = static_cast<Wide>(sums.work(all, false).count()) * m * kMillion;
  // A slow device that reduces could work least meanwhile.
  const Wide reductions =
      static_cast<Wide>(all_reductions(sums, cell).count()) * cell.replicas * least_speed_;
  const auto time =
      static_cast<std::int64_t>((work + reductions) / speed_[static_cast<std::size_t>(devices)]);
  return Duration{time} - rounding(3 * m * sums.layers() / devices + 1);
}

Duration WorkBounds::share_of_work(const ChainSums& sums, int devices) const {
  const LayerSpan all{0, sums.layers()};
  const Duration share = std::max(sums.work(all, false) / devices, sums.largest_work() / 2);
  return std::max(kNone, slow_down(share, device_.time_ppm) - rounding(3 * sums.layers()));
}

// Each of a group's layers is reduced by one of its devices, or by two.
Duration WorkBounds::all_reductions(const ChainSums& sums, const ShapeCell& cell) const {
  return reduction(sums.updated_parameters({0, sums.layers()}), cell.replicas);
}

WorkBounds::GroupTime WorkBounds::time_of_group(const ChainSums& sums, const ShapeCell& cell,
                                                int devices) const {
  const LayerSpan all{0, sums.layers()};
  const Duration work = slow_down(sums.work(all, false), device_.time_ppm);
  return {.devices = devices,
          .share = share_of_work(sums, devices),
          .work = std::max(kNone, work - rounding(3 * sums.layers())),
          .reductions = all_reductions(sums, cell)};
}

Duration WorkBounds::GroupTime::at_least(std::int64_t micro_batches) const {
  return std::max(share * micro_batches, (work * micro_batches + reductions) / devices);
}

std::int64_t WorkBounds::GroupTime::most_within(Duration time, std::int64_t most) const {
  if (share.count() > 0) most = std::min(most, time / share);
  // (work n + reductions) / devices <= time, rounded down.
  const Duration room = (time + Duration{1}) * devices - Duration{1} - reductions;
  if (room < kNone) return 0;
  return work.count() > 0 ? std::min(most, room / work) : most;
}

NamedBound WorkBounds::bound(const ChainSums& sums, const ShapeCell& cell) const {
  const int m = whole_micro_batches(sums.micro_batch_size());
  const GroupTime shorter = time_of_group(sums, cell, cell.devices);
  Duration time = shorter.at_least(ceil_div(m, cell.replicas));
  if (cell.longer > 0) {
    const GroupTime longer = time_of_group(sums, cell, cell.devices + 1);
    const auto can_share = [&](Duration most) {
      return shorter.most_within(most, m) * (cell.replicas - cell.longer) +
                 longer.most_within(most, m) * cell.longer >=
             m;
    };
    Duration below = shorter.at_least(0) - Duration{1};
    Duration enough = time;
    while (enough - below > Duration{1}) {
      const Duration middle = below + (enough - below) / 2;
      (can_share(middle) ? enough : below) = middle;
    }
    time = enough;
  }
  return {std::max({kNone, time, total_work(sums, cell, cell.used())}), "total-work"};
}

NamedBound WorkBounds::bound_longer(const ChainSums& sums, const ShapeCell& cell) const {
  const int m = whole_micro_batches(sums.micro_batch_size());
  const int used = std::min(space_.devices, (cell.devices + 1) * cell.replicas - 1);
  const GroupTime longer = time_of_group(sums, cell, cell.devices + 1);
  const Duration time =
      std::max(total_work(sums, cell, used), longer.at_least(ceil_div(m, cell.replicas)));
  return {std::max(kNone, time), "total-work"};
}

Duration WorkBounds::reduction(Bytes bytes, int owners, int nodes) const {
  if (owners < 2 || bytes.count == 0 || space_.options.overlap) return kNone;
  const std::int64_t steps = static_cast<std::int64_t>(owners) - 1;
  const Bytes share{(bytes.count + owners - 1) / owners};
  return 2 * steps * link_.latency + share * (steps * (nodes + 1)) / link_.bandwidth;
}

bool WorkBounds::some_cut_keeps(const ChainSums& sums, const ShapeCell& cell,
                                const VariantClass& variant, Duration most) const {
  const int stages = cell.devices + (cell.longer > 0 ? 1 : 0);
  const int m = whole_micro_batches(sums.micro_batch_size());
  const std::int64_t n = ceil_div(m, cell.replicas);
  const Duration slack = rounding(sums.layers());
  const auto path = [&](Duration time) {
    return std::max(kNone, slow_down(time, device_.time_ppm) - slack);
  };
  const auto load = [&](LayerSpan span) {
    const SpanTimes times = sums.times(span, device_, variant.recompute);
    const Duration backward =
        variant.splits ? std::min(times.backward, times.input + times.weight) : times.backward;
    const Duration after =
        reduction(sums.updated_parameters(span), cell.replicas) + sums.update(span, device_);
    const Duration tail = variant.splits ? kNone : path(sums.tail(span.first, false));
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

NamedBound WorkBounds::mean_device(const ChainSums& sums, const ShapeCell& cell,
                                   const VariantClass& variant) const {
  const int devices = cell.devices + (cell.longer > 0 ? 1 : 0);
  const int m = whole_micro_batches(sums.micro_batch_size());
  const std::int64_t n = ceil_div(m, cell.replicas);
  // A stage recomputes all its layers where one has a backward; that layer at the least.
  Duration sum{0};
  for (int l = 0; l < sums.layers(); ++l) sum += sums.work({l, l + 1}, variant.recompute) * n;
  for (int d = 0; variant.one_way && d < std::min(devices, cell.devices); ++d) {
    sum += variant.splits ? sums.least_head(d) : sums.least_path(d);
  }
  const Duration time =
      slow_down(sum / devices, device_.time_ppm) + all_reductions(sums, cell) / devices;
  return {std::max(kNone, time - rounding((4 * n + 2) * sums.layers())), "mean-device"};
}

NamedBound WorkBounds::bound(const ChainSums& sums, const ShapeCell& cell,
                             const VariantClass& variant) const {
  const NamedBound least = bound(sums, cell);
  if (!variant.one_stage_per_device) {
    const NamedBound mean = mean_device(sums, cell, variant);
    return mean.time > least.time ? mean : least;
  }
  if (some_cut_keeps(sums, cell, variant, least.time)) return least;
  Duration below = least.time;
  Duration enough = below + Duration{1};
  while (!some_cut_keeps(sums, cell, variant, enough)) {
    below = enough;
    enough += enough;
  }
  while (enough - below > Duration{1} && (enough - below) * 256 > enough) {
    const Duration middle = below + (enough - below) / 2;
    (some_cut_keeps(sums, cell, variant, middle) ? enough : below) = middle;
  }
  return {below + Duration{1}, "best-cut"};
}

Bytes WorkBounds::least_memory(const ChainSums& sums, const ShapeCell& cell) const {
  const LayerSpan all{0, sums.layers()};
  const Bytes held = sums.parameters(all) + sums.updated_parameters(all) + sums.optimizer(all);
  const int devices = cell.devices + (cell.longer > 0 ? 1 : 0);
  return Bytes{(held.count + devices - 1) / devices};
}

}  // namespace frazil
