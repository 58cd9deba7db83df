#include "planner/reproduce/own_plans/best_walks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "planner/reproduce/own_plans/fixed_space.h"
#include "planner/reproduce/own_plans/timed_walk.h"
#include "planner/trajectory/step_times.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// What a step takes at least, by segment and plan.
using LeastSteps = std::vector<std::vector<Duration>>;

struct TimedWalk {
  std::vector<HeldSegment> walk;
  Duration time{0};  // without the start
};

int prefix_under(const OwnTraining& training, const FreezeMask& mask) {
  return count_frozen_prefix(training.profile, find_activity(training.profile, mask));
}

// Finds the cheapest walk through some plans, with their caches.
class PlanWalks {
 public:
  PlanWalks(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
            const std::vector<Plan>& plans, const LeastSteps& least)
      : training_(training), segments_(segments), plans_(plans) {
    const auto layers = static_cast<int>(training.profile.layers.size());
    for (const Plan& plan : plans) first_.push_back(count_first_layers(plan, layers));
    for (const ForecastSegment& segment : segments) {
      question_.steps.push_back(segment.steps);
      question_.prefix.push_back(prefix_under(training, segment.mask));
    }
    const FeatureStore store = make_own_store(training);
    for (const int depth : std::set(question_.prefix.begin(), question_.prefix.end())) {
      for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
        const bool has_room = depth > 0 && find_room(store, tier, training.profile, depth);
        if (has_room) question_.rooms.push_back({depth, tier});
      }
    }
    question_.epoch = steps_per_epoch(store, training.batch_size);
    question_.plans = plans.size();
    bound_rest(least);
  }

  // Returns no walk if all take `limit` or longer, or do not fit.
  std::optional<TimedWalk> find(Duration limit) {
    question_.limit = limit - Duration{1};
    const CacheCosts costs{
        .step = [&](std::size_t segment, std::size_t plan,
                    HeldFeatures features) { return read(segment, plan, features); },
        .fill =
            [&](std::size_t segment, std::size_t plan, HeldFeatures features, HeldFeatures from) {
              return std::min(kFarAway, read(segment, plan, from) + copy(plan, features));
            },
        .change = [&](std::size_t segment, std::size_t from,
                      std::size_t to) { return change(segment, from, to); }};
    const auto found = find_cached_walk(question_, costs);
    if (!found) return std::nullopt;
    TimedWalk walk{.walk = {}, .time = found->total};
    for (std::size_t k = 0; k < segments_.size(); ++k) {
      walk.walk.push_back({plans_[found->plans[k]], segments_[k], found->caches[k]});
    }
    return walk;
  }

 private:
  void bound_rest(const LeastSteps& least) {
    question_.rest.assign(segments_.size(), std::vector<RemainingBound>(plans_.size()));
    Duration end{0};
    for (std::size_t k = segments_.size(); k-- > 0;) {
      const auto of_steps = [&](Duration step) {
        return step >= kFarAway ? kFarAway : std::min(kFarAway, step * segments_[k].steps + end);
      };
      for (std::size_t p = 0; p < plans_.size(); ++p) {
        question_.rest[k][p] = {.begin = of_steps(least[k][p]), .end = end};
      }
      end = of_steps(*std::min_element(least[k].begin(), least[k].end()));
    }
  }

  Duration copy(std::size_t plan, HeldFeatures features) const {
    return time_features(training_, plans_[plan], features);
  }

  Duration read(std::size_t segment, std::size_t plan, HeldFeatures features) {
    // A run caches nothing of a prefix that goes on in a second stage.
    if (features.depth > 0 && question_.prefix[segment] > first_[plan]) return kFarAway;
    return std::max(work(segment, plan, features.depth), copy(plan, features));
  }

  // Returns the time of a step beside its copies.
  Duration work(std::size_t segment, std::size_t plan, int depth) {
    const auto [known, is_new] = steps_.try_emplace({segment, plan, depth}, kFarAway);
    if (!is_new) return known->second;
    try {
      known->second = time_step(training_, plans_[plan], segments_[segment].mask, depth).total();
    } catch (const InfeasibleError&) {
      // The plan does not fit: no walk can hold it.
    }
    return known->second;
  }

  Duration change(std::size_t segment, std::size_t from, std::size_t to) {
    const auto [known, is_new] = changes_.try_emplace({segment, from, to});
    if (is_new) {
      known->second =
          time_transition(training_, plans_[from], plans_[to], segments_[segment - 1].mask);
    }
    return known->second;
  }

  const OwnTraining& training_;
  const std::vector<ForecastSegment>& segments_;
  const std::vector<Plan>& plans_;
  std::vector<int> first_;  // by plan: layers in the first stage of every pipeline
  CacheQuestion question_;
  std::map<std::tuple<std::size_t, std::size_t, int>, Duration> steps_;  // by segment, plan, depth
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Duration> changes_;
};

// Bounds steps that read the deepest features that a plan can cache, on an adapter that no other
// ring shares.
LeastSteps bound_steps(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
                       const std::vector<Plan>& plans) {
  const Cluster cluster = make_own_cluster(training, 1);
  const SearchOptions options = search_options(training);
  std::vector<FreezeMask> masks;
  for (const ForecastSegment& segment : segments) masks.push_back(segment.mask);
  StepTimes times(plans, masks, {training.profile, cluster}, options);
  LeastSteps least(masks.size());
  for (std::size_t k = 0; k < masks.size(); ++k) {
    const int prefix = prefix_under(training, masks[k]);
    for (std::size_t p = 0; p < plans.size(); ++p) {
      least[k].push_back(times.known(k, p, times.may_cache(k, p, prefix) ? prefix : 0));
    }
  }
  return least;
}

TimedWalk take(std::optional<TimedWalk>&& best) {
  if (!best) throw InfeasibleError("no plan of the search fits under every mask");
  return std::move(*best);
}

}  // namespace

HeldPlanChoice hold_best(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
                         const std::vector<Plan>& known) {
  std::optional<TimedWalk> best;
  const auto limit = [&] { return best ? best->time : kFarAway; };
  const auto hold = [&](const Plan& plan, const LeastSteps& least) {
    const std::vector<Plan> alone{plan};
    auto walk = PlanWalks(training, segments, alone, least).find(limit());
    if (walk) best = std::move(walk);
  };
  for (const Plan& plan : known) hold(plan, bound_steps(training, segments, {plan}));
  const FixedSpace space = list_fixed_plans(training, segments, limit());
  for (const BoundedPlan& one : space.plans) {
    if (one.total >= limit()) break;
    LeastSteps least;
    for (const Duration step : one.least) least.push_back({step});
    hold(one.plan, least);
  }
  TimedWalk found = take(std::move(best));
  return {.walk = std::move(found.walk), .time = found.time, .plans = space.listed};
}

std::vector<HeldSegment> walk_best(const OwnTraining& training,
                                   const std::vector<ForecastSegment>& segments,
                                   const std::vector<Plan>& plans, Duration most) {
  const LeastSteps least = bound_steps(training, segments, plans);
  return take(PlanWalks(training, segments, plans, least).find(most + Duration{1})).walk;
}

}  // namespace frazil
