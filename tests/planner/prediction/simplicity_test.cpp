// Tests which of two plans is the simpler, and that a ranking prefers it within the noise alone.

#include "planner/prediction/simplicity.h"

#include <gtest/gtest.h>

#include "planner/prediction/plan_notation.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

Plan plan_on(int layers, std::vector<LayerId> cuts, std::vector<DeviceId> devices,
             ScheduleKind kind) {
  Plan plan;
  plan.batch_size = 4;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(layers);
  plan.pipelines = {make_pipeline(layers, cuts, devices, {MicroBatchId{0}, MicroBatchId{3}})};
  plan.schedule = NamedSchedule{.kind = kind};
  return plan;
}

Plan linear(ScheduleKind kind) {
  return plan_on(4, {LayerId{2}}, {DeviceId{0}, DeviceId{1}}, kind);
}

Plan alone(ScheduleKind kind) { return plan_on(4, {}, {DeviceId{0}}, kind); }

// Stages 0 and 3 on device 0, 1 and 2 on device 1.
Plan bent(ScheduleKind kind) {
  Plan plan = plan_on(4, {LayerId{1}, LayerId{2}, LayerId{3}},
                      {DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}, kind);
  plan.schedule = NamedSchedule{.kind = kind, .chunks = 2};
  return plan;
}

Plan side_by_side(const Plan& plan, std::vector<DeviceId> devices) {
  Plan both = plan;
  Pipeline other = plan.pipelines[0];
  for (std::size_t s = 0; s < other.stages.size(); ++s) other.stages[s].devices = {devices[s]};
  both.pipelines.push_back(other);
  return both;
}

TEST(Simplicity, CountsWhatAPlanHasBesideItsCuts) {
  Plan deep = linear(ScheduleKind::kOneForwardOneBackward);
  EXPECT_EQ(count_complications(alone(ScheduleKind::kGpipe)), 0);
  EXPECT_EQ(count_complications(alone(ScheduleKind::kZbH1)), 0) << "one device runs a loop";
  EXPECT_EQ(count_complications(deep), 1);
  EXPECT_EQ(count_complications(linear(ScheduleKind::kZbH1)), 2);
  EXPECT_EQ(count_complications(bent(ScheduleKind::kZbV)), 3);
  deep.schedule = NamedSchedule{.kind = ScheduleKind::kOneForwardOneBackward, .in_flight = 3};
  EXPECT_EQ(count_complications(deep), 2);
  for (Stage& stage : deep.pipelines[0].stages) stage.memory = MemoryPolicy::kRecompute;
  EXPECT_EQ(count_complications(deep), 3);
  deep.schedule = ExplicitSchedule{};
  EXPECT_EQ(count_complications(deep), 3) << "listed, no depth";
}

TEST(Simplicity, ADeviceCountsOnceHoweverManyStagesLieOnIt) {
  EXPECT_EQ(simplicity_of(bent(ScheduleKind::kZbV)), Simplicity(3, 2, 4));
  EXPECT_EQ(simplicity_of(linear(ScheduleKind::kGpipe)), Simplicity(1, 2, 2));
}

TEST(Simplicity, PipelinesBothWaysAreNoReplicas) {
  const Plan linear_plan = linear(ScheduleKind::kDualPipe);
  const ParallelShape ways = parallel_shape(side_by_side(linear_plan, {DeviceId{1}, DeviceId{0}}));
  EXPECT_TRUE(ways.both_ways);
  EXPECT_EQ(ways.replicas, 1);
  EXPECT_EQ(ways.chunks, 2);
  const ParallelShape replicas =
      parallel_shape(side_by_side(linear_plan, {DeviceId{2}, DeviceId{3}}));
  EXPECT_FALSE(replicas.both_ways);
  EXPECT_EQ(replicas.replicas, 2);
  EXPECT_EQ(replicas.chunks, 1);
  EXPECT_EQ(pipeline_devices_text(replicas), "2");
  Plan unequal = side_by_side(linear_plan, {DeviceId{2}, DeviceId{3}});
  unequal.pipelines[1] = make_pipeline(4, {}, {DeviceId{2}}, {MicroBatchId{2}, MicroBatchId{3}});
  EXPECT_EQ(pipeline_devices_text(parallel_shape(unequal)), "2/1");
  EXPECT_EQ(count_complications(unequal), count_complications(linear_plan) + 1);
}

Candidate taking(Plan plan, int microseconds) {
  Candidate candidate;
  candidate.plan = std::move(plan);
  candidate.makespan = std::chrono::microseconds(microseconds);
  return candidate;
}

std::vector<int> microseconds_of(const Ranking& ranking) {
  std::vector<int> times;
  for (const Candidate& candidate : ranking.candidates) {
    times.push_back(static_cast<int>(candidate.makespan.count() / 1000));
  }
  return times;
}

TEST(Simplicity, ARankingPrefersTheSimplestWithinTheNoiseAndNoFurther) {
  Ranking ranking;
  ranking.candidates = {taking(bent(ScheduleKind::kZbV), 1000),
                        taking(linear(ScheduleKind::kZbH1), 1004),
                        taking(linear(ScheduleKind::kOneForwardOneBackward), 1010),
                        taking(alone(ScheduleKind::kGpipe), 1011)};
  Ranking by_time = ranking;
  prefer_simplest(by_time, 0);
  EXPECT_EQ(microseconds_of(by_time), (std::vector{1000, 1004, 1010, 1011}));
  EXPECT_EQ(by_time.tied, 0);
  prefer_simplest(ranking, 10'000);
  EXPECT_EQ(microseconds_of(ranking), (std::vector{1010, 1004, 1000, 1011}));
  EXPECT_EQ(ranking.tied, 3);
  EXPECT_EQ(ranking.fastest()->makespan, std::chrono::microseconds(1000));
  EXPECT_EQ(ranking.best()->makespan, std::chrono::microseconds(1010));
}

TEST(Simplicity, TheFasterOfTwoEquallySimplePlansStaysInFront) {
  Ranking ranking;
  ranking.candidates = {taking(linear(ScheduleKind::kOneForwardOneBackward), 1000),
                        taking(linear(ScheduleKind::kGpipe), 1000),
                        taking(linear(ScheduleKind::kGpipe), 1001)};
  const std::vector<Candidate> before = ranking.candidates;
  prefer_simplest(ranking, 10'000);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(ranking.candidates[i].plan, before[i].plan) << i;
  }
}

}  // namespace
}  // namespace frazil
