// Tests the space of fixed plans: what is in it, and that its bounds leave out nothing that is
// faster.

#include "planner/reproduce/own_plans/fixed_space.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/prediction/plan_notation.h"
#include "planner/reproduce/elastic_run.h"
#include "planner/reproduce/own_plans/best_walks.h"
#include "planner/reproduce/own_plans/timed_walk.h"
#include "planner/reproduce/rtx5000.h"
#include "planner/trajectory/step_times.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// Eight layers on 16 devices; two steps in an epoch, and half of the layers freeze after the first.
OwnTraining freezing_chain(Bytes device_memory = kRtx5000Memory) {
  return {.name = "chain",
          .profile = make_chain(8, microseconds{100}, microseconds{100}, microseconds{100}),
          .batch_size = 16,
          .micro_batch_sizes = {1, 2},
          .samples = 32,
          .frozen = {0, 3, 3},
          .device_memory = device_memory};
}

// Returns the deepest features that the plan can read under a mask.
int deepest(const OwnTraining& training, const Plan& plan, const FreezeMask& mask) {
  const int prefix = count_frozen_prefix(training.profile, find_activity(training.profile, mask));
  return prefix <= count_first_layers(plan, 8) ? prefix : 0;
}

TEST(FixedSpace, HasEveryLengthOfPipelineWithAsManyPipelinesAsTheDevicesAllow) {
  const OwnTraining training = freezing_chain();
  const FixedSpace space = list_fixed_plans(training, list_segments(training), kFarAway);
  EXPECT_EQ(space.listed, static_cast<std::int64_t>(space.plans.size()));
  std::set<std::pair<int, int>> shapes;
  std::set<ScheduleKind> schedules;
  for (const BoundedPlan& one : space.plans) {
    const ParallelShape shape = parallel_shape(one.plan);
    shapes.insert({shape.pipeline_devices.front(), shape.replicas});
    schedules.insert(std::get<NamedSchedule>(one.plan.schedule).kind);
  }
  // Pipelines have at most as many stages as the model has layers, and micro-batches of 2 are
  // eight.
  for (const auto& shape : {std::pair{1, 16}, {2, 8}, {3, 5}, {4, 4}, {5, 3}, {6, 2}, {8, 2}}) {
    EXPECT_EQ(shapes.count(shape), 1U) << shape.first << " x " << shape.second;
  }
  for (const ScheduleKind kind : search_options(training).schedules) {
    EXPECT_EQ(schedules.count(kind), 1U) << static_cast<int>(kind);
  }
}

TEST(FixedSpace, NoStepTakesLessThanItsBound) {
  const OwnTraining training = freezing_chain();
  const auto segments = list_segments(training);
  int timed = 0;
  for (const BoundedPlan& one : list_fixed_plans(training, segments, kFarAway).plans) {
    for (std::size_t k = 0; k < segments.size(); ++k) {
      const FreezeMask& mask = segments[k].mask;
      try {
        const Duration step =
            time_step(training, one.plan, mask, deepest(training, one.plan, mask)).total();
        ++timed;
        EXPECT_LE(one.least[k], step) << variant_notation(one.plan);
      } catch (const InfeasibleError&) {
        // Some schedules refuse these numbers of micro-batches.
      }
    }
  }
  EXPECT_GT(timed, 1000);
}

TEST(FixedSpace, ItsBestPlanIsTheFastestOfAllPlansSimulated) {
  // 24 kB are less than one device needs for the eight layers that train.
  for (const Bytes memory : {kRtx5000Memory, kRtx5000Context + Bytes{24'000}}) {
    const OwnTraining training = freezing_chain(memory);
    const ForecastSegment all{0, 6, FreezeMask::all_active(8)};
    Duration least = kFarAway;
    for (const BoundedPlan& one : list_fixed_plans(training, {all}, kFarAway).plans) {
      try {
        least = std::min(least, time_step(training, one.plan, all.mask, 0).total());
      } catch (const InfeasibleError&) {
        // Not a plan that can be held.
      }
    }
    const HeldPlanChoice best = hold_best(training, {all}, {});
    EXPECT_EQ(time_walk(training, best.walk).total(), least * 6 + start_time());
  }
}

}  // namespace
}  // namespace frazil
