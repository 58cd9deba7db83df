#include "planner/bounds/stage_limits.h"

#include <algorithm>

#include "planner/bounds/variant_memory.h"
#include "planner/orders/linear_orders.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/linear_bounds.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostHeld = std::int64_t{1} << 31;

// Returns K of a stage of a linear class; 0 if its class holds no known number.
int depth_of(const ShapeVariant& variant, int micro_batches, int stages, int stage) {
  const ScheduleFacts& facts = facts_of(variant.schedule);
  const int depth = variant.in_flight.value_or(facts.own_in_flight.on(stages));
  switch (facts.bounds) {
    case BoundClass::kTwoPhases:
      return micro_batches;
    case BoundClass::kFalling:
    case BoundClass::kWeightsLast:
      return warm_up(depth, stages, stage);
    case BoundClass::kLevel:
    case BoundClass::kLevelInHalves:
      return depth;
    case BoundClass::kNone:
      return 0;
  }
  return 0;
}

}  // namespace

StageLimits::StageLimits(const Shape& shape, const GroupClass& group, int joined,
                         const ChainSums& sums, const Cluster& group_cluster,
                         const WorkBounds& reductions, const Owners& owners)
    : shape_(shape),
      sums_(sums),
      group_cluster_(group_cluster),
      reductions_(reductions),
      owners_(owners),
      joined_(joined) {
  const ScheduleFacts& facts = facts_of(shape.variant.schedule);
  const int ways = directions(facts.placement);
  stages_ = static_cast<int>(group_cluster.devices.size()) * shape.variant.chunks;
  share_ = group.share / ways;
  whole_ = std::max(0, share_ - (group.has_short ? 1 : 0));
  splits_ = facts.splits_backward;
  linear_ = ways == 1 && shape.variant.chunks == 1 && has_linear_bounds(facts);
  swiftest_.time_ppm = kMillion;
  bool rounds = false;
  for (std::size_t d = 0; d < group_cluster.devices.size(); ++d) {
    const std::int64_t ppm = group_cluster.devices[d].time_ppm;
    rounds = rounds || ppm != kMillion;
    swiftest_.time_ppm = d == 0 ? ppm : std::min(swiftest_.time_ppm, ppm);
  }
  swiftest_.action_overhead = kNoTime;
  // F and I of each layer may each be rounded down where they are priced.
  slack_ = Duration{rounds ? 2 * sums.layers() : 0};
  chain_from_.assign(static_cast<std::size_t>(layers()) + 1, true);
  for (int cut = layers() - 1; cut >= 1; --cut) {
    const auto at = static_cast<std::size_t>(cut);
    is_joined_ = is_joined_ && sums.is_joined(cut);
    chain_from_[at] = chain_from_[at + 1] && sums.is_joined(cut) && sums.carries(cut);
  }
  chain_from_[0] = false;
  add_hops(group_cluster);
}

int StageLimits::least_first(int stage) const { return stage == 0 ? 0 : stage + joined_; }

void StageLimits::add_hops(const Cluster& group_cluster) {
  const Placement placement = placement_of(shape_.variant);
  const auto devices = static_cast<int>(group_cluster.devices.size());
  hops_down_.assign(static_cast<std::size_t>(stages_), kNoTime);
  hops_up_ = hops_down_;
  for (int s = 1; s < stages_; ++s) {
    const auto at = static_cast<std::size_t>(s);
    hops_down_[at] = hops_down_[at - 1];
    hops_up_[at] = hops_up_[at - 1];
    const DeviceId before{device_of_stage(placement, devices, 0, s - 1)};
    const DeviceId here{device_of_stage(placement, devices, 0, s)};
    if (before == here) continue;
    const Link there = group_cluster.link(before, here);
    const Link back = group_cluster.link(here, before);
    Duration down = kNever;
    Duration up = kNever;
    for (int cut = s; cut <= most_first(s); ++cut) {
      down = std::min(down, sums_.neighbour_down(cut) / there.bandwidth + there.latency);
      up = std::min(up, sums_.neighbour_up(cut) / back.bandwidth + back.latency);
    }
    hops_down_[at] += down;
    hops_up_[at] += up;
  }
}

// Returns the least F, or I, of one micro-batch in all these layers.
Duration StageLimits::outside(LayerSpan span, bool forward) const {
  if (span.first == span.end) return kNoTime;
  const SpanTimes kept = sums_.times(span, swiftest_, false);
  const Duration time =
      forward ? std::min(kept.forward, sums_.times(span, swiftest_, true).forward)
              : (splits_ ? kept.input : std::min(kept.backward, kept.input + kept.weight));
  return std::max(kNoTime, time - slack_);
}

// Returns D of a stage that ends before layer `end`.
Duration StageLimits::round_trip(int stage, int end) const {
  if (end == layers()) return kNoTime;
  const auto at = static_cast<std::size_t>(stage);
  const LayerSpan later{end, layers()};
  return outside(later, true) + outside(later, false) + hops_down_.back() - hops_down_[at] +
         hops_up_.back() - hops_up_[at];
}

// Returns the span of a stage by its class alone, from its first F to its last work.
Duration StageLimits::span_of(int stage, LayerSpan span, const SpanTimes& times,
                              std::int64_t held) const {
  if (!linear_ || whole_ < 1 || !sums_.has_backward(span)) return kNoTime;
  if (!chain_from_[static_cast<std::size_t>(span.end)]) return kNoTime;
  const BoundClass bounds = facts_of(shape_.variant.schedule).bounds;
  const bool weights_last = bounds == BoundClass::kWeightsLast;
  if (weights_last && !sums_.has_input(span)) return kNoTime;
  const Duration later = round_trip(stage, span.end);
  const Duration backward = std::min(times.backward, times.input + times.weight);
  if (bounds == BoundClass::kTwoPhases) {
    // R of one micro-batch may run while the first gradient is on its way.
    return (times.forward + backward + times.recompute) * whole_ + later - times.recompute;
  }
  StageTimes own{times.forward, backward, kNoTime};
  if (splits_) own = {times.forward, times.input, weights_last ? kNoTime : backward - times.input};
  const auto release = bounds == BoundClass::kLevelInHalves ? ActivationRelease::kHalfAtInput
                                                            : ActivationRelease::kAllAtWeight;
  std::int64_t depth = depth_of(shape_.variant, share_, stages_, stage);
  if (!splits_) depth = std::min(depth, held);
  Duration found = bound_span(own, later, whole_, depth, release);
  if (weights_last) found += (backward - times.input) * whole_;
  if (!splits_) return found;
  const std::int64_t returns = (whole_ - 1) / held + 1;
  return std::max(found, (times.forward + later + times.input) * returns);
}

// Returns how many micro-batches a stage may hold between F and I on its device beside its state:
// 0 if it has no room for one, or for what its schedule holds for sure.
std::int64_t StageLimits::most_held(int stage, LayerSpan span) const {
  const int device = device_of_stage(placement_of(shape_.variant),
                                     static_cast<int>(group_cluster_.devices.size()), 0, stage);
  const Bytes limit = group_cluster_.devices[static_cast<std::size_t>(device)].memory_limit;
  const Bytes state =
      sums_.parameters(span) + sums_.updated_parameters(span) + sums_.optimizer(span);
  if (state > limit) return 0;
  const Bytes stash = sums_.stash(span);
  if (recomputes(shape_.variant, stage, stages_) || stash.count == 0) return kMostHeld;
  const auto known = known_in_flight(shape_.variant, whole_, stages_, stage);
  if (known && stash_in_flight(sums_, span, *known) > limit - state) return 0;
  return (limit - state).count / stash.count;
}

Duration StageLimits::at_least(int stage, LayerSpan span) const {
  // A short micro-batch alone takes less than any bound on whole ones.
  if (whole_ == 0) return kNoTime;
  const std::int64_t held = most_held(stage, span);
  if (held == 0) return kNever;
  const auto at = static_cast<std::size_t>(stage);
  const int where = device_of_stage(placement_of(shape_.variant),
                                    static_cast<int>(group_cluster_.devices.size()), 0, stage);
  const Device& device = group_cluster_.devices[static_cast<std::size_t>(where)];
  const SpanTimes times = sums_.times(span, device, recomputes(shape_.variant, stage, stages_));
  const auto path = [&](Duration time) {
    return std::max(kNoTime, scale_ppm(time, swiftest_.time_ppm) - slack_);
  };
  const Duration head = path(sums_.head(span.first)) + (is_joined_ ? hops_down_[at] : kNoTime);
  const bool returns = chain_from_[1];
  const Duration hops_back = returns ? hops_up_[at] : kNoTime;
  const Duration backward = std::min(times.backward, times.input + times.weight);
  const Duration after =
      reductions_.reduction(sums_.updated_parameters(span), owners_.devices, owners_.nodes) +
      sums_.update(span, device);
  const Duration tail = path(sums_.tail(span.first, splits_)) + hops_back;
  const Duration by_class = span_of(stage, span, times, held);
  const Duration work = (times.forward + times.recompute + backward) * whole_;
  const Duration follows = splits_ ? after : std::max(tail, after);
  Duration least = head + std::max(work, by_class) + follows;
  if (splits_) {
    least = std::max(least, head + (times.forward + times.recompute + times.input) * whole_ + tail);
  }
  return least;
}

// From the last stage to the first: the least of the largest bound over all cuts of the rest.
void StageLimits::bound_all_cuts() {
  const auto width = static_cast<std::size_t>(layers()) + 1;
  rest_.assign(static_cast<std::size_t>(stages_) * width, kNever);
  for (int s = stages_ - 1; s >= 0; --s) {
    const int most = s == 0 ? 0 : most_first(s);
    for (int first = least_first(s); first <= most; ++first) {
      Duration& least =
          rest_[static_cast<std::size_t>(s) * width + static_cast<std::size_t>(first)];
      if (s + 1 == stages_) {
        least = at_least(s, {first, layers()});
        continue;
      }
      for (int end = std::max(first + 1, least_first(s + 1)); end <= most_first(s + 1); ++end) {
        const Duration rest = rest_at_least(s + 1, end);
        if (rest >= least) continue;
        least = std::min(least, std::max(at_least(s, {first, end}), rest));
      }
    }
  }
}

}  // namespace frazil
