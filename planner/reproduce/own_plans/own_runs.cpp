#include "planner/reproduce/own_plans/own_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "planner/prediction/plan_notation.h"
#include "planner/search/search.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kPlansPerMask = 3;

std::string notation(const Plan& plan) {
  const ParallelShape shape = parallel_shape(plan);
  return fmt::format("{} x {} {}", pipeline_devices_text(shape), shape.replicas,
                     variant_notation(plan));
}

OwnRun describe(const OwnTraining& training, const Walk& walk) {
  OwnRun run{.plans = notation(walk.front().plan), .parts = time_walk(training, walk)};
  for (std::size_t k = 1; k < walk.size(); ++k) {
    if (walk[k].plan == walk[k - 1].plan) continue;
    run.plans += " -> " + notation(walk[k].plan);
    ++run.transitions;
  }
  return run;
}

// Returns how many layers lie in the first stage of each of the plan's pipelines.
int count_first_layers(const Plan& plan) {
  int least = plan.pipelines.front().stages.front().layers.front().last.value + 1;
  for (const Pipeline& pipeline : plan.pipelines) {
    least = std::min(least, pipeline.stages.front().layers.front().last.value + 1);
  }
  return least;
}

// Finds the cheapest caches of one plan that is held throughout.
class FixedPlan {
 public:
  FixedPlan(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
            const Plan& plan)
      : training_(training), segments_(segments), plan_(plan) {}

  // Returns no walk if the plan does not fit.
  std::optional<Walk> find() {
    CacheQuestion question;
    std::set<int> depths;
    const int first = count_first_layers(plan_);
    for (const ForecastSegment& segment : segments_) {
      const Activity activity = find_activity(training_.profile, segment.mask);
      const int prefix = count_frozen_prefix(training_.profile, activity);
      question.steps.push_back(segment.steps);
      question.prefix.push_back(prefix);
      if (prefix > 0 && prefix <= first) depths.insert(prefix);
    }
    for (const int depth : depths) question.rooms.push_back({depth, FeatureTier::kMemory});
    question.epoch = steps_per_epoch(make_own_store(training_), training_.batch_size);
    const CacheCosts costs{
        .step = [&](std::size_t segment, std::size_t,
                    HeldFeatures features) { return read_step(segment, features); },
        .fill =
            [&](std::size_t segment, std::size_t, HeldFeatures features, HeldFeatures from) {
              const Duration read = read_step(segment, from);
              return read >= kFarAway ? read
                                      : read + time_features(training_, plan_, features.depth);
            },
        .change = [](std::size_t, std::size_t, std::size_t) { return kFarAway; }};
    const auto found = find_cached_walk(question, costs);
    if (!found) return std::nullopt;
    Walk walk;
    for (std::size_t k = 0; k < segments_.size(); ++k) {
      walk.push_back({plan_, segments_[k], found->caches[k]});
    }
    return walk;
  }

 private:
  Duration read_step(std::size_t segment, HeldFeatures features) {
    const auto known = steps_.find({segment, features.depth});
    if (known != steps_.end()) return known->second;
    Duration time = kFarAway;
    try {
      const Duration work =
          time_step(training_, plan_, segments_[segment].mask, features.depth).total();
      time = std::max(work, time_features(training_, plan_, features.depth));
    } catch (const InfeasibleError&) {
      // The plan does not fit: the walk cannot hold it.
    }
    return steps_[{segment, features.depth}] = time;
  }

  const OwnTraining& training_;
  const std::vector<ForecastSegment>& segments_;
  const Plan& plan_;
  std::map<std::pair<std::size_t, int>, Duration> steps_;
};

// Returns the cheapest way to hold one of the plans through all segments.
OwnRun hold_best(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
                 const std::vector<Plan>& plans) {
  std::optional<OwnRun> best;
  for (const Plan& plan : plans) {
    const std::optional<Walk> walk = FixedPlan(training, segments, plan).find();
    if (!walk) continue;
    OwnRun run = describe(training, *walk);
    if (!best || run.parts.total() < best->parts.total()) best = std::move(run);
  }
  if (!best) throw InfeasibleError("no plan of the search fits under every mask");
  return *best;
}

PlannedTrajectory plan_forecast_of(const OwnTraining& training) {
  const Cluster cluster = make_own_cluster(training, 1);
  return plan_trajectory({training.profile, cluster}, list_segments(training),
                         {.search = search_options(training),
                          .plans_per_mask = kPlansPerMask,
                          .overhead = own_overhead(),
                          .store = make_own_store(training)});
}

OwnRun follow(const OwnTraining& training, const PlannedTrajectory& planned) {
  Walk walk;
  for (std::size_t k = 0; k < planned.segments.size(); ++k) {
    const HeldCache cache = planned.caches ? planned.caches->walk.caches[k] : HeldCache{};
    walk.push_back({planned.candidates[planned.best.states[k]], planned.segments[k], cache});
  }
  return describe(training, walk);
}

// The best unfrozen plans of the search, of which timing with shared adapters may prefer another.
std::vector<Plan> search_unfrozen(const OwnTraining& training) {
  constexpr int kKept = 8;
  const Cluster cluster = make_own_cluster(training, 1);
  SearchOptions options = search_options(training);
  options.keep = kKept;
  std::vector<Plan> plans;
  for (const Candidate& candidate : search_plans({training.profile, cluster}, options).candidates) {
    if (candidate.infeasible || plans.size() == kKept) break;
    plans.push_back(candidate.plan);
  }
  return plans;
}

}  // namespace

OwnRuns plan_own_runs(const OwnTraining& training) {
  const PlannedTrajectory planned = plan_forecast_of(training);
  const std::vector<Plan> unfrozen = search_unfrozen(training);
  ForecastSegment all{0, 0, FreezeMask::all_active(planned.segments.front().mask.blocks())};
  for (const ForecastSegment& segment : planned.segments) all.steps += segment.steps;
  std::vector<Plan> candidates = planned.candidates;
  for (const Plan& plan : unfrozen) {
    if (std::find(candidates.begin(), candidates.end(), plan) == candidates.end()) {
      candidates.push_back(plan);
    }
  }
  return {.unfrozen = hold_best(training, {all}, unfrozen),
          .fixed = hold_best(training, planned.segments, candidates),
          .elastic = follow(training, planned)};
}

OwnRun plan_elastic(const OwnTraining& training) {
  return follow(training, plan_forecast_of(training));
}

}  // namespace frazil
