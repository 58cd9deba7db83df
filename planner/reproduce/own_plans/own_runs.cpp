#include "planner/reproduce/own_plans/own_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "planner/prediction/plan_notation.h"
#include "planner/search/search.h"
#include "planner/trajectory/step_times.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kPlansPerMask = 3;

std::string notation(const Plan& plan) {
  const ParallelShape shape = parallel_shape(plan);
  return fmt::format("{} x {} {}", pipeline_devices_text(shape), shape.replicas,
                     variant_notation(plan));
}

OwnRun describe(const OwnTraining& training, const std::vector<HeldSegment>& walk) {
  OwnRun run{.plans = notation(walk.front().plan), .parts = time_walk(training, walk)};
  for (std::size_t k = 1; k < walk.size(); ++k) {
    if (walk[k].plan == walk[k - 1].plan) continue;
    run.plans += " -> " + notation(walk[k].plan);
    ++run.transitions;
  }
  return run;
}

struct TimedWalk {
  std::vector<HeldSegment> walk;
  Duration time{0};  // without the start
};

// Finds the cheapest caches of one plan that is held throughout.
class FixedPlan {
 public:
  FixedPlan(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
            const Plan& plan)
      : training_(training),
        segments_(segments),
        plan_(plan),
        first_(count_first_layers(plan, static_cast<int>(training.profile.layers.size()))) {
    for (const ForecastSegment& segment : segments) {
      const Activity activity = find_activity(training.profile, segment.mask);
      const int prefix = count_frozen_prefix(training.profile, activity);
      question_.steps.push_back(segment.steps);
      question_.prefix.push_back(prefix);
      if (prefix > 0 && prefix <= first_) depths_.insert(prefix);
    }
    for (const int depth : depths_) question_.rooms.push_back({depth, FeatureTier::kMemory});
    question_.epoch = steps_per_epoch(make_own_store(training), training.batch_size);
  }

  // Returns no walk if the plan does not fit, or if it takes `limit` or longer.
  std::optional<TimedWalk> find(Duration limit) {
    if (at_least(limit) >= limit) return std::nullopt;
    const auto read = [&](std::size_t segment, HeldFeatures features) {
      // A run caches nothing of a prefix that goes on in a second stage.
      if (features.depth > 0 && question_.prefix[segment] > first_) return kFarAway;
      return std::max(work(segment, features.depth), copy(features.depth));
    };
    const CacheCosts costs{
        .step = [&](std::size_t segment, std::size_t,
                    HeldFeatures features) { return read(segment, features); },
        .fill =
            [&](std::size_t segment, std::size_t, HeldFeatures features, HeldFeatures from) {
              return std::min(kFarAway, read(segment, from) + copy(features.depth));
            },
        .change = [](std::size_t, std::size_t, std::size_t) { return kFarAway; }};
    const auto found = find_cached_walk(question_, costs);
    if (!found || found->total >= limit) return std::nullopt;
    TimedWalk walk{.walk = {}, .time = found->total};
    for (std::size_t k = 0; k < segments_.size(); ++k) {
      walk.walk.push_back({plan_, segments_[k], found->caches[k]});
    }
    return walk;
  }

 private:
  // Returns a lower bound: every step reads the deepest features that the plan can cache, at no
  // cost. (An order that follows the costs of layers could in principle gain from more of them.) It
  // is added up no further than to `limit`.
  Duration at_least(Duration limit) {
    Duration sum{0};
    for (std::size_t k = 0; k < segments_.size() && sum < limit; ++k) {
      const auto deeper = depths_.upper_bound(question_.prefix[k]);
      const int deepest = deeper == depths_.begin() ? 0 : *std::prev(deeper);
      const Duration step = work(k, deepest);
      sum = step >= kFarAway ? kFarAway : sum + step * segments_[k].steps;
    }
    return sum;
  }

  Duration copy(int depth) const { return time_features(training_, plan_, depth); }

  // Returns the time of a step beside its copies.
  Duration work(std::size_t segment, int depth) {
    const auto known = steps_.find({segment, depth});
    if (known != steps_.end()) return known->second;
    Duration time = kFarAway;
    try {
      time = time_step(training_, plan_, segments_[segment].mask, depth).total();
    } catch (const InfeasibleError&) {
      // The plan does not fit: no walk can hold it.
    }
    return steps_[{segment, depth}] = time;
  }

  const OwnTraining& training_;
  const std::vector<ForecastSegment>& segments_;
  const Plan& plan_;
  int first_;  // layers in the first stage of every pipeline
  CacheQuestion question_;
  std::set<int> depths_;
  std::map<std::pair<std::size_t, int>, Duration> steps_;
};

// Returns the cheapest way to hold one of the plans through all segments.
OwnRun hold_best(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
                 const std::vector<Plan>& plans) {
  std::optional<TimedWalk> best;
  for (const Plan& plan : plans) {
    auto walk = FixedPlan(training, segments, plan).find(best ? best->time : kFarAway);
    if (walk) best = std::move(walk);
  }
  if (!best) throw InfeasibleError("no plan of the search fits under every mask");
  return describe(training, best->walk);
}

PlannedTrajectory plan_forecast_of(const OwnTraining& training) {
  const Cluster cluster = make_own_cluster(training, 1);
  return plan_trajectory({training.profile, cluster}, list_segments(training),
                         {.search = search_options(training),
                          .plans_per_mask = kPlansPerMask,
                          .overhead = own_overhead(),
                          .store = make_own_store(training)});
}

void add_new(const Plan& plan, std::vector<Plan>& plans) {
  if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(plan);
}

// Returns the best unfrozen plans for each micro-batch size and each longest pipeline. A plan that
// is slower while nothing is frozen may be the best to hold, for its first stage caches more; and
// timing with shared adapters may prefer another plan than the search does.
std::vector<Plan> search_unfrozen(const OwnTraining& training) {
  constexpr std::size_t kKept = 2;
  const Cluster cluster = make_own_cluster(training, 1);
  PlanSearch search({training.profile, cluster});
  std::vector<Plan> plans;
  for (const int size : training.micro_batch_sizes) {
    for (int longest = 1; longest <= static_cast<int>(cluster.devices.size()); longest *= 4) {
      SearchOptions options = search_options(training);
      options.micro_batch_sizes = {size};
      options.max_stages = longest;
      options.keep = kKept;
      const Ranking ranking = search.search(options);
      const std::size_t kept = std::min(kKept, ranking.candidates.size());
      for (std::size_t c = 0; c < kept && !ranking.candidates[c].infeasible; ++c) {
        add_new(ranking.candidates[c].plan, plans);
      }
    }
  }
  return plans;
}

}  // namespace

OwnRuns plan_own_runs(const OwnTraining& training) {
  const PlannedTrajectory planned = plan_forecast_of(training);
  ForecastSegment all{0, 0, FreezeMask::all_active(planned.segments.front().mask.blocks())};
  for (const ForecastSegment& segment : planned.segments) all.steps += segment.steps;
  // Plans with few stages come first: they cache most, and the bound then leaves out the others.
  std::vector<Plan> candidates = search_unfrozen(training);
  for (const Plan& plan : planned.candidates) add_new(plan, candidates);
  std::stable_sort(candidates.begin(), candidates.end(), [](const Plan& a, const Plan& b) {
    return a.pipelines.front().stages.size() < b.pipelines.front().stages.size();
  });
  return {.unfrozen = hold_best(training, {all}, candidates),
          .fixed = hold_best(training, planned.segments, candidates),
          .elastic = describe(training, list_held_segments(planned))};
}

OwnRun plan_elastic(const OwnTraining& training) {
  return describe(training, list_held_segments(plan_forecast_of(training)));
}

}  // namespace frazil
