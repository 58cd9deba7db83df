#include "planner/what_if/plan_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "planner/actions/validate_plan.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

// A plan of two pipelines of three stages of one layer, with 7 and 5 of 12 micro-batches of 2.
struct Sample {
  ModelProfile profile = make_chain(3, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  Cluster cluster = make_uniform_cluster(6, Bytes{1'000'000}, {nanoseconds(1), {}});
  Plan plan;

  Sample() {
    plan.model_hash = model_hash(profile);
    plan.batch_size = 24;
    plan.micro_batch_size = 2;
    plan.mask = FreezeMask::all_active(3);
    plan.schedule = NamedSchedule{.in_flight = 3};
    for (int r = 0; r < 2; ++r) {
      plan.pipelines.push_back(make_pipeline(
          3, {LayerId{1}, LayerId{2}}, {DeviceId{3 * r}, DeviceId{3 * r + 1}, DeviceId{3 * r + 2}},
          {MicroBatchId{7 * r}, MicroBatchId{r == 0 ? 6 : 11}}));
    }
  }
};

TEST(PlanChanges, AnotherScheduleBringsItsVersionsAndWhatItRecomputes) {
  const Sample sample;
  const Plan varuna = with_schedule(sample.plan, {.kind = ScheduleKind::kVaruna});
  EXPECT_EQ(varuna.pipelines[1].stages[0].memory, MemoryPolicy::kRecompute);
  EXPECT_EQ(varuna.pipelines[1].stages[2].memory, MemoryPolicy::kKeep);
  EXPECT_NO_THROW(simulate_plan(varuna, {sample.profile, sample.cluster}));
  EXPECT_EQ(with_schedule(sample.plan, {.kind = ScheduleKind::kPipeDream2Bw}).versions,
            WeightVersions::kTwoBuffered);
  EXPECT_EQ(with_schedule(varuna, {}).versions, WeightVersions::kSync);
}

TEST(PlanChanges, AnotherScheduleTakesTheStagesOfADeviceAsItsChunks) {
  Sample sample;
  sample.profile = make_chain(4, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  sample.plan.model_hash = model_hash(sample.profile);
  sample.plan.mask = FreezeMask::all_active(4);
  sample.plan.pipelines = {make_pipeline(4, {LayerId{1}, LayerId{2}, LayerId{3}},
                                         {DeviceId{0}, DeviceId{1}, DeviceId{0}, DeviceId{1}},
                                         {MicroBatchId{0}, MicroBatchId{11}})};
  for (const ScheduleKind kind :
       {ScheduleKind::kInterleaved, ScheduleKind::kLoopedBfs, ScheduleKind::kGpipe}) {
    EXPECT_NO_THROW(
        simulate_plan(with_schedule(sample.plan, {.kind = kind}), {sample.profile, sample.cluster}))
        << schedule_name(kind);
  }
  sample.plan.versions = WeightVersions::kStash;
  EXPECT_EQ(with_schedule(sample.plan, DispatchPolicy::kFifo).versions, WeightVersions::kSync);
}

TEST(PlanChanges, OtherMicroBatchesKeepTheBatchAndTheShares) {
  const Sample sample;
  const Plan finer = with_micro_batches(sample.plan, 24);
  EXPECT_EQ(finer.micro_batch_size, 1);
  EXPECT_EQ(finer.pipelines[0].micro_batches,
            (std::vector<MicroBatches>{{MicroBatchId{0}, MicroBatchId{13}}}));
  EXPECT_EQ(finer.pipelines[1].micro_batches,
            (std::vector<MicroBatches>{{MicroBatchId{14}, MicroBatchId{23}}}));
  const Plan coarser = with_micro_batches(sample.plan, 5);  // 5 of 5, the last of 4
  EXPECT_EQ(coarser.micro_batch_size, 5);
  EXPECT_EQ(coarser.pipelines[0].micro_batches.front().last, MicroBatchId{1});
  for (const Plan& plan : {finer, coarser}) {
    EXPECT_NO_THROW(validate(plan, {sample.profile, sample.cluster}, "plan"));
  }
  EXPECT_EQ(with_micro_batches(sample.plan, 12), sample.plan);
}

std::string refusal(const Plan& plan, int micro_batches) {
  try {
    with_micro_batches(plan, micro_batches);
    return "";
  } catch (const InfeasibleError& error) {
    return error.what();
  }
}

TEST(PlanChanges, RefusesACutThatABatchDoesNotTake) {
  const Sample sample;
  EXPECT_EQ(refusal(sample.plan, 13),
            "a batch of 24 cannot be cut into 13 micro-batches of one size with a shorter last "
            "one; 2 would be 12 of 2");
  EXPECT_EQ(refusal(sample.plan, 1), "of 1 micro-batches none is left for pipeline 0");
}

TEST(PlanChanges, ComparesEveryScheduleThatItsStagesTake) {
  Sample sample;
  const Ranking ranking = compare_schedules(sample.plan, {sample.profile, sample.cluster}, false);
  std::set<std::string_view> left;
  for (const ScheduleFacts& facts : all_schedules()) left.insert(facts.name);
  for (const Candidate& candidate : ranking.candidates) {
    left.erase(schedule_name(std::get<NamedSchedule>(candidate.plan.schedule).kind));
  }
  EXPECT_EQ(left, (std::set<std::string_view>{"interleaved-1f1b", "interleaved-zb", "looped-bfs",
                                              "hanayo", "pipedream", "pipedream-2bw"}))
      << "PipeDream's two have no flush; the others take any number of chunks, but not one";
  Duration last{0};
  int feasible = 0;
  for (const Candidate& candidate : ranking.candidates) {
    if (candidate.infeasible) {
      EXPECT_FALSE(candidate.infeasible->reason.empty());
      continue;
    }
    ++feasible;
    EXPECT_GE(candidate.makespan, last);
    last = candidate.makespan;
    EXPECT_EQ(candidate.makespan,
              simulate_plan(candidate.plan, {sample.profile, sample.cluster}).makespan);
    EXPECT_EQ(candidate.plan.pipelines[0].micro_batches, sample.plan.pipelines[0].micro_batches);
  }
  EXPECT_GE(feasible, 9);
  // If a device has no more memory than the plan's own 1f1b needs, gpipe does not fit.
  Bytes most;
  for (const MemoryPeak& peak :
       simulate_plan(sample.plan, {sample.profile, sample.cluster}).memory) {
    most = std::max(most, peak.total);
  }
  for (Device& device : sample.cluster.devices) device.memory_limit = most;
  const Ranking tight = compare_schedules(sample.plan, {sample.profile, sample.cluster}, false);
  const auto gpipe = std::find_if(
      tight.candidates.begin(), tight.candidates.end(), [](const Candidate& candidate) {
        return std::get<NamedSchedule>(candidate.plan.schedule).kind == ScheduleKind::kGpipe;
      });
  ASSERT_TRUE(gpipe->infeasible);
  EXPECT_NE(gpipe->infeasible->reason.find("needs"), std::string::npos);
  EXPECT_FALSE(tight.candidates.front().infeasible);
}

}  // namespace
}  // namespace frazil
