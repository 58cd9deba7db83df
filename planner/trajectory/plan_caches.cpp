#include "planner/trajectory/plan_caches.h"

#include <algorithm>

#include "planner/trajectory/far_sums.h"
#include "planner/trajectory/remaining_bound.h"

namespace frazil {
namespace {

// The first limit lies this fraction (1 / kFirstRoom) of what caches could save above the least.
constexpr int kFirstRoom = 256;

}  // namespace

CachePlanner::CachePlanner(const ModelProfile& profile, const std::vector<Plan>& plans,
                           const std::vector<MaskedSegment>& segments, const FeatureStore& store,
                           StepTimes& steps)
    : plans_(plans), segments_(segments), store_(store), steps_(steps) {
  question_.plans = plans.size();
  question_.epoch = steps_per_epoch(store, plans.front().batch_size);
  for (const MaskedSegment& segment : segments) {
    question_.steps.push_back(segment.steps);
    question_.prefix.push_back(segment.prefix);
  }
  list_rooms(profile);
}

void CachePlanner::list_rooms(const ModelProfile& profile) {
  std::vector<int> depths = question_.prefix;
  std::sort(depths.begin(), depths.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  of_sample_.resize(profile.layers.size());
  for (const int depth : depths) {
    const auto of_sample = depth == 0 ? std::nullopt : find_feature_bytes(profile, depth);
    if (!of_sample) continue;
    const Bytes all = *of_sample * store_.samples;
    least_room_ = least_room_ ? std::min(*least_room_, all) : all;
    for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
      if (!find_room(store_, tier, profile, depth)) continue;
      question_.rooms.push_back({depth, tier});
      of_sample_[static_cast<std::size_t>(depth)] = *of_sample;
    }
  }
}

Duration CachePlanner::reading(std::size_t plan, HeldFeatures features) const {
  if (features.depth == 0) return Duration{0};
  return transfer_time(store_.tier(features.tier),
                       of_sample_[static_cast<std::size_t>(features.depth)], plans_[plan]);
}

Duration CachePlanner::read_step(Duration work, std::size_t plan, HeldFeatures features) const {
  return work >= kFarAway ? kFarAway : std::max(work, reading(plan, features));
}

Duration CachePlanner::fill_step(Duration work, std::size_t plan, HeldFeatures features,
                                 HeldFeatures source) const {
  const Duration read = read_step(work, plan, source);
  return read >= kFarAway ? kFarAway : read + reading(plan, features);  // writing takes as long
}

// Returns no more than the time of a step that reads a cache no deeper than `depth`, or none.
Duration CachePlanner::find_least_step(std::size_t segment, std::size_t plan, int depth) {
  const std::size_t mask = segments_[segment].mask;
  Duration least = steps_.known(mask, plan, 0);
  const auto& rooms = question_.rooms;
  std::optional<Duration> deepest;
  for (auto room = rooms.rbegin(); room != rooms.rend(); ++room) {
    if (room->depth > depth || !steps_.may_cache(mask, plan, room->depth)) continue;
    const Duration read = reading(plan, *room);
    if (deepest && least <= std::max(*deepest, read)) continue;
    const Duration work = steps_.least(mask, plan, room->depth);
    if (!deepest) deepest = work;
    least = std::min(least, std::max(work, read));
  }
  return least;
}

Duration CachePlanner::exact_read(std::size_t segment, std::size_t plan, HeldFeatures features) {
  return read_step(steps_.exact(segments_[segment].mask, plan, features.depth), plan, features);
}

Duration CachePlanner::exact_fill(std::size_t segment, std::size_t plan, HeldFeatures features,
                                  HeldFeatures source) {
  const std::size_t mask = segments_[segment].mask;
  if (!steps_.may_cache(mask, plan, features.depth)) return kFarAway;
  return fill_step(steps_.exact(mask, plan, source.depth), plan, features, source);
}

Duration CachePlanner::step_time(std::size_t segment, std::size_t plan, HeldFeatures features) {
  const Duration reads = exact_read(segment, plan, features);
  return reads < kFarAway ? reads : exact_read(segment, plan, {});
}

Duration CachePlanner::filling_step_time(std::size_t segment, std::size_t plan,
                                         const HeldCache& cache) {
  const Duration fills = exact_fill(segment, plan, cache.features, cache.source);
  return fills < kFarAway ? fills : step_time(segment, plan, cache.source);
}

// Returns the plan that the walk leaves for another at the beginning of a segment; none if it
// leaves none.
std::optional<std::size_t> CachePlanner::plan_before(const CachedWalk& walk,
                                                     std::size_t segment) const {
  const std::optional<std::size_t> before =
      segment == 0 ? question_.start : std::optional(walk.plans[segment - 1]);
  return before == walk.plans[segment] ? std::nullopt : before;
}

// Makes the costs of the walk exact; returns whether some were not.
bool CachePlanner::sharpen(const CachedWalk& walk, const PlanChanges& changes) {
  bool changed = false;
  const auto ask = [&](std::size_t segment, int depth) {
    const std::size_t mask = segments_[segment].mask;
    const Duration known = steps_.known(mask, walk.plans[segment], depth);
    changed = steps_.exact(mask, walk.plans[segment], depth) != known || changed;
  };
  for (std::size_t k = 0; k < segments_.size(); ++k) {
    const HeldCache& cache = walk.caches[k];
    if (cache.left > 0) ask(k, cache.source.depth);
    if (cache.left < segments_[k].steps) ask(k, cache.features.depth);
    const std::optional<std::size_t> from = plan_before(walk, k);
    if (!from) continue;
    const Duration known = changes.known(k, *from, walk.plans[k]);
    changed = changes.exact(k, *from, walk.plans[k]) != known || changed;
  }
  return changed;
}

// Returns what a walk whose costs are exact costs; kFarAway if it cannot be.
Duration CachePlanner::price(const CachedWalk& walk, const CacheCosts& costs) const {
  Duration total{0};
  const auto pay = [&](Duration cost, Step count) { total = add(total, times(cost, count)); };
  for (std::size_t k = 0; k < segments_.size(); ++k) {
    const HeldCache& cache = walk.caches[k];
    const std::size_t plan = walk.plans[k];
    const Step filling = std::min(cache.left, segments_[k].steps);
    if (const auto from = plan_before(walk, k)) pay(costs.change(k, *from, plan), 1);
    if (filling > 0) pay(costs.fill(k, plan, cache.features, cache.source), filling);
    pay(costs.step(k, plan, cache.features), segments_[k].steps - filling);
  }
  return total;
}

std::optional<CachePlan> CachePlanner::plan(const PlanChanges& changes, const Trajectory& uncached,
                                            std::optional<std::size_t> start) {
  question_.start = start;
  const CacheCosts costs{
      .step =
          [&](std::size_t segment, std::size_t plan, HeldFeatures features) {
            return read_step(steps_.known(segments_[segment].mask, plan, features.depth), plan,
                             features);
          },
      .fill =
          [&](std::size_t segment, std::size_t plan, HeldFeatures features, HeldFeatures source) {
            const std::size_t mask = segments_[segment].mask;
            if (!steps_.may_cache(mask, plan, features.depth)) return kFarAway;
            return fill_step(steps_.known(mask, plan, source.depth), plan, features, source);
          },
      .change = changes.known};
  const auto least_step = [&](std::size_t segment, std::size_t plan, int depth) {
    return find_least_step(segment, plan, depth);
  };
  question_.rest = find_remaining_bound(question_, least_step, costs);
  // Few walks come near the least, so the limit grows until a walk is within it.
  Duration least = kFarAway;
  for (const RemainingBound& rest : question_.rest.front()) least = std::min(least, rest.begin);
  Duration room = std::max(Duration{1}, (uncached.total - least) / kFirstRoom);
  for (;; room *= 2) {
    question_.limit = std::min(uncached.total, least + room);
    std::optional<CachedWalk> walk = find_cached_walk(question_, costs);
    while (walk && sharpen(*walk, changes)) {
      question_.limit = std::min(question_.limit, price(*walk, costs));
      walk = find_cached_walk(question_, costs);
    }
    if (walk) return describe(*walk);
    if (question_.limit >= uncached.total) return std::nullopt;
  }
}

Bytes CachePlanner::room_of(HeldFeatures features) const {
  return of_sample_[static_cast<std::size_t>(features.depth)] * store_.samples;
}

CachePlan CachePlanner::describe(const CachedWalk& walk) {
  CachePlan planned{walk, {}, {}, {}};
  if (question_.rooms.empty()) planned.least_room = least_room_;
  for (std::size_t k = 0; k < segments_.size(); ++k) {
    const HeldCache& cache = walk.caches[k];
    planned.bytes.push_back(room_of(cache.features));
    const bool only_fills = cache.left >= segments_[k].steps;
    planned.step_times.push_back(only_fills
                                     ? exact_fill(k, walk.plans[k], cache.features, cache.source)
                                     : exact_read(k, walk.plans[k], cache.features));
    const HeldCache before =
        k == 0 ? HeldCache{} : after(walk.caches[k - 1], segments_[k - 1].steps);
    if (cache.left == 0 || cache == before) continue;
    PlannedFill fill{.segment = k, .features = cache.features, .source = cache.source};
    fill.bytes = room_of(cache.features);
    follow(walk, fill);
    planned.fills.push_back(fill);
  }
  return planned;
}

// Sums up a fill for as long as its cache is held, compared with going on with its source.
void CachePlanner::follow(const CachedWalk& walk, PlannedFill& fill) {
  Duration missing{0};
  Step steps = 0;
  const auto pass = [&](Duration saved, Step length) {
    if (length == 0) return;
    if (!fill.break_even && saved >= Duration{0} && missing <= saved * length) {
      const bool at_once = missing <= Duration{0};
      fill.break_even = steps + (at_once ? 0 : (missing + saved - Duration{1}) / saved);
    }
    missing -= saved * length;
    steps += length;
  };
  HeldCache cache = walk.caches[fill.segment];
  for (std::size_t k = fill.segment; k < segments_.size() && walk.caches[k] == cache; ++k) {
    const std::size_t plan = walk.plans[k];
    const Step filling = std::min(cache.left, segments_[k].steps);
    const Duration old_step = step_time(k, plan, fill.source);
    const Duration fills =
        filling > 0 ? exact_fill(k, plan, cache.features, cache.source) : Duration{0};
    const Duration reads = exact_read(k, plan, cache.features);
    fill.steps += filling;
    fill.cost += (fills - reads) * filling;
    pass(old_step - fills, filling);
    pass(old_step - reads, segments_[k].steps - filling);
    cache = after(cache, segments_[k].steps);
  }
}

}  // namespace frazil
