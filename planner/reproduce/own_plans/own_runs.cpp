#include "planner/reproduce/own_plans/own_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/prediction/plan_notation.h"
#include "planner/reproduce/own_plans/best_walks.h"
#include "planner/search/search.h"
#include "planner/trajectory/trajectory_candidates.h"

namespace frazil {
namespace {

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

OwnRun describe(const OwnTraining& training, const HeldPlanChoice& choice) {
  OwnRun run = describe(training, choice.walk);
  run.of_plans = choice.plans;
  return run;
}

// Returns the candidates of a trajectory through these segments. Plans with few stages come first:
// they cache most, and bounds then leave out the others.
std::vector<Plan> list_candidates(const OwnTraining& training,
                                  const std::vector<ForecastSegment>& segments) {
  const Cluster cluster = make_own_cluster(training, 1);
  PlanSearch search({training.profile, cluster});
  CandidateQuestion question{search_options(training), kPlansPerMask, /*may_cache=*/true};
  std::vector<Plan> candidates;
  for (const ForecastSegment& segment : segments) {
    question.search.mask = segment.mask;
    add_candidates(search, {training.profile, cluster}, question, candidates);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Plan& a, const Plan& b) {
    return a.pipelines.front().stages.size() < b.pipelines.front().stages.size();
  });
  return candidates;
}

void add_new(const Plan& plan, std::vector<Plan>& plans) {
  if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(plan);
}

}  // namespace

OwnRuns plan_own_runs(const OwnTraining& training) {
  const std::vector<ForecastSegment> segments = list_segments(training);
  ForecastSegment all{0, 0, FreezeMask::all_active(segments.front().mask.blocks())};
  for (const ForecastSegment& segment : segments) all.steps += segment.steps;
  std::vector<Plan> plans = list_candidates(training, segments);
  const HeldPlanChoice unfrozen = hold_best(training, {all}, plans);
  const HeldPlanChoice fixed = hold_best(training, segments, plans);
  add_new(unfrozen.walk.front().plan, plans);
  add_new(fixed.walk.front().plan, plans);
  return {.unfrozen = describe(training, unfrozen),
          .fixed = describe(training, fixed),
          .elastic = describe(training, walk_best(training, segments, plans, fixed.time))};
}

}  // namespace frazil
