#include "analysis/ablation/arm_plans.h"

#include <gtest/gtest.h>

#include "planner/prediction/plan_notation.h"
#include "planner/search/rankings/rank_plans.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using First = ArmFacts::First;
using std::chrono::microseconds;

const Link kLink{microseconds{2}, BytesPerSecond{1'000'000'000}};

class ArmPlans : public testing::Test {
 protected:
  void SetUp() override {
    options = ranking_options();
    options.batch_size = 8;
    options.micro_batch_sizes = {1, 2};
    options.mask = FreezeMask::all_active(8);
  }
  ArmPlan find(First first) const {
    return find_first_plan(first, {profile, cluster}, options, kNoisePpm);
  }

  ModelProfile profile = make_chain(8, microseconds{100}, microseconds{100}, microseconds{100});
  Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, kLink);
  SearchOptions options;
};

TEST_F(ArmPlans, AreWhatTheirArmAllows) {
  const ArmPlan one = find(First::kOneDevice);
  ASSERT_TRUE(one.plan.has_value()) << one.reason;
  EXPECT_EQ(one.plan->pipelines.size(), 1U);
  EXPECT_EQ(one.plan->pipelines[0].stages.size(), 1U);
  EXPECT_EQ(count_replicas(*one.plan), 1);
  const ArmPlan replicas = find(First::kReplicas);
  ASSERT_TRUE(replicas.plan.has_value()) << replicas.reason;
  EXPECT_EQ(count_replicas(*replicas.plan), 4);
  for (const Pipeline& pipeline : replicas.plan->pipelines) EXPECT_EQ(pipeline.stages.size(), 1U);
  PlanSearch search({profile, cluster});
  EXPECT_EQ(*find(First::kBest).plan, rank_plans(search, options, kNoisePpm).best()->plan);
}

TEST_F(ArmPlans, TakeTheFastestOfUnequalDevices) {
  cluster.devices[0].time_ppm = 3'000'000;
  cluster.devices[2].time_ppm = 2'000'000;
  const ArmPlan one = find(First::kOneDevice);
  ASSERT_TRUE(one.plan.has_value()) << one.reason;
  const DeviceId device = one.plan->pipelines[0].stages[0].devices[0];
  EXPECT_EQ(cluster.devices[device.index()].time_ppm, 1'000'000);
}

TEST_F(ArmPlans, GiveThePlannersReasonWhereTheModelFitsNoDevice) {
  // Eight layers of 4000 bytes of parameters, gradients and optimizer state fit no device.
  cluster = make_uniform_cluster(4, Bytes{20'000}, kLink);
  for (const First first : {First::kOneDevice, First::kReplicas}) {
    const ArmPlan none = find(first);
    EXPECT_FALSE(none.plan.has_value());
    EXPECT_NE(none.reason.find("no plan is feasible"), std::string::npos) << none.reason;
  }
  EXPECT_TRUE(find(First::kBest).plan.has_value());
}

TEST_F(ArmPlans, OfPipeTransformerAreItsPlannersAndSumUpGradientsAsAllArmsDo) {
  const ArmPlan made = find(First::kPipeTransformer);
  ASSERT_TRUE(made.plan.has_value()) << made.reason;
  EXPECT_EQ(made.plan->pipelines.size(), 1U) << "one pipeline a host while nothing is frozen";
  EXPECT_EQ(made.plan->reduction, ReductionMode::kExact);
  options.reduction = ReductionMode::kFast;
  EXPECT_EQ(find(First::kPipeTransformer).plan->reduction, ReductionMode::kFast);
  cluster = make_uniform_cluster(3, Bytes{1'000'000}, kLink);
  const ArmPlan none = find(First::kPipeTransformer);
  EXPECT_FALSE(none.plan.has_value());
  EXPECT_NE(none.reason.find("a power of two of devices, not 3"), std::string::npos) << none.reason;
}

TEST_F(ArmPlans, CountPipelinesThatRunBothWaysOnceAndSharingDevicesEach) {
  Plan plan;
  plan.pipelines = {make_pipeline(8, {LayerId{4}}, {DeviceId{0}, DeviceId{1}}, {}),
                    make_pipeline(8, {LayerId{4}}, {DeviceId{1}, DeviceId{0}}, {})};
  EXPECT_EQ(count_replicas(plan), 1);
  plan.pipelines[1].stages[0].devices = {DeviceId{2}};
  plan.pipelines[1].stages[1].devices = {DeviceId{3}};
  EXPECT_EQ(count_replicas(plan), 2);
  plan.pipelines[1].stages[1].devices = {DeviceId{3}, DeviceId{4}, DeviceId{5}};
  EXPECT_EQ(count_replicas(plan), 3);
}

}  // namespace
}  // namespace frazil
