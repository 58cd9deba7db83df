#include "planner/trajectory/cached_walk.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/trajectory/far_sums.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr Duration kUnknown{-1};

// The cheapest way to a plan at the beginning of a segment.
struct Change {
  Duration total = kFarAway;
  int changes = 0;
  std::size_t from = 0;  // the plan held before

  bool is_better_than(const Change& other) const {
    return std::tie(total, changes) < std::tie(other.total, other.changes);
  }
};

// The cheapest way to a plan and a cache at the end of a segment.
struct Arrival : Change {
  HeldCache before;  // at the end of the previous segment
  HeldCache during;  // at the beginning of this segment
};

using Arrivals = std::map<HeldCache, std::vector<Arrival>>;  // by cache, plan

class Walker {
 public:
  Walker(const CacheQuestion& question, const CacheCosts& costs)
      : question_(question), costs_(costs) {}

  std::optional<CachedWalk> find() {
    std::vector<Arrival> anywhere(question_.plans);
    for (std::size_t plan = 0; plan < anywhere.size(); ++plan) {
      if (question_.start.value_or(plan) == plan) anywhere[plan].total = Duration{0};
    }
    Arrivals begin{{HeldCache{}, anywhere}};
    for (std::size_t k = 0; k < question_.steps.size(); ++k) {
      arrivals_.push_back(advance(k, k == 0 ? begin : arrivals_.back()));
      if (arrivals_.back().empty()) return std::nullopt;
    }
    return trace_back();
  }

 private:
  std::vector<HeldCache> list_choices(std::size_t segment, const HeldCache& before) const {
    const int prefix = question_.prefix[segment];
    std::vector<HeldCache> choices;
    if (may_keep(segment, before)) choices.push_back(before);
    choices.emplace_back();
    if (!choices.front().is_none() && before.features.depth == prefix) return choices;
    const bool serves = before.left == 0 && before.features.depth < prefix;
    const HeldFeatures source = serves ? before.features : HeldFeatures{};
    for (const HeldFeatures& room : question_.rooms) {
      if (room.depth == prefix) choices.push_back({room, source, question_.epoch});
    }
    return choices;
  }

  // A run stores at the end of the prefix alone, and while that lies deeper it reads what it has,
  // but cannot come back to storing there.
  bool may_keep(std::size_t segment, const HeldCache& cache) const {
    if (cache.is_none()) return false;
    const int depth = cache.features.depth;
    const int prefix = question_.prefix[segment];
    if (depth < prefix) return cache.left == 0;
    return depth == prefix && segment > 0 && question_.prefix[segment - 1] == depth;
  }

  // Returns the cheapest way to each plan, transitions included. Few plans arrive, so that few
  // costs are asked for.
  std::vector<Change> change_plans(std::size_t segment, const std::vector<Arrival>& before) const {
    std::vector<Change> changed(before.size());
    for (std::size_t from = 0; from < before.size(); ++from) {
      const Duration so_far = before[from].total;
      if (so_far >= kFarAway) continue;
      for (std::size_t to = 0; to < changed.size(); ++to) {
        const Duration rest = rest_from(segment, to).begin;
        if (!can_end(so_far, rest)) continue;
        const Duration total = from == to ? so_far : add(so_far, change(segment, from, to));
        const Change next{total, before[from].changes + (from == to ? 0 : 1), from};
        if (can_end(total, rest) && next.is_better_than(changed[to])) changed[to] = next;
      }
    }
    return changed;
  }

  // Without a start the first plan is free to choose.
  Duration change(std::size_t segment, std::size_t from, std::size_t to) const {
    return segment == 0 && !question_.start ? kFarAway : costs_.change(segment, from, to);
  }

  Duration hold(std::size_t segment, std::size_t plan, const HeldCache& cache) const {
    const Step filling = std::min(cache.left, question_.steps[segment]);
    const Step reading = question_.steps[segment] - filling;
    Duration time{0};
    if (filling > 0) {
      time = times(costs_.fill(segment, plan, cache.features, cache.source), filling);
    }
    if (reading > 0) time = add(time, times(costs_.step(segment, plan, cache.features), reading));
    return time;
  }

  Arrivals advance(std::size_t segment, const Arrivals& before) const {
    std::map<HeldCache, std::vector<Duration>> holds;
    Arrivals next;
    for (const auto& [cache, arrivals] : before) {
      const std::vector<Change> changed = change_plans(segment, arrivals);
      for (const HeldCache& choice : list_choices(segment, cache)) {
        std::vector<Duration>& own =
            holds.try_emplace(choice, question_.plans, kUnknown).first->second;
        const HeldCache end = after(choice, question_.steps[segment]);
        for (std::size_t plan = 0; plan < question_.plans; ++plan) {
          if (changed[plan].total >= kFarAway) continue;
          if (own[plan] == kUnknown) own[plan] = hold(segment, plan, choice);
          Arrival arrival{changed[plan], cache, choice};
          arrival.total = add(arrival.total, own[plan]);
          arrival.changes += choice == cache ? 0 : 1;
          if (!can_end(arrival.total, rest_from(segment, plan).end)) continue;
          Arrival& best = next.try_emplace(end, question_.plans).first->second[plan];
          if (arrival.is_better_than(best)) best = arrival;
        }
      }
    }
    return next;
  }

  RemainingBound rest_from(std::size_t segment, std::size_t plan) const {
    return question_.rest.empty() ? RemainingBound{} : question_.rest[segment][plan];
  }

  bool can_end(Duration total, Duration rest) const {
    const Duration least = add(total, rest);
    return least < kFarAway && least <= question_.limit;
  }

  std::optional<CachedWalk> trace_back() const {
    const Arrival* best = nullptr;
    std::size_t plan = 0;
    for (const auto& [cache, arrivals] : arrivals_.back()) {
      for (std::size_t p = 0; p < arrivals.size(); ++p) {
        if (best != nullptr && !arrivals[p].is_better_than(*best)) continue;
        best = &arrivals[p];
        plan = p;
      }
    }
    if (best == nullptr || best->total >= kFarAway) return std::nullopt;
    const std::size_t segments = arrivals_.size();
    CachedWalk walk{best->total, std::vector<std::size_t>(segments),
                    std::vector<HeldCache>(segments)};
    for (std::size_t k = segments; k-- > 0;) {
      walk.plans[k] = plan;
      walk.caches[k] = best->during;
      plan = best->from;
      if (k > 0) best = &arrivals_[k - 1].at(best->before)[plan];
    }
    return walk;
  }

  const CacheQuestion& question_;
  const CacheCosts& costs_;
  std::vector<Arrivals> arrivals_;  // by segment
};

}  // namespace

HeldCache after(HeldCache cache, Step steps) {
  if (cache.left > steps) return {cache.features, cache.source, cache.left - steps};
  return {cache.features};
}

std::optional<CachedWalk> find_cached_walk(const CacheQuestion& question, const CacheCosts& costs) {
  ENSURE(!question.steps.empty() && question.plans > 0, "some segment and some plan");
  ENSURE(question.prefix.size() == question.steps.size(), "a prefix for each segment");
  ENSURE(question.rest.empty() || question.rest.size() == question.steps.size(),
         "a rest from each segment on, or none");
  return Walker(question, costs).find();
}

}  // namespace frazil
