// Tests the bound on any plan against every plan that an exhaustive search makes.

#include "planner/prediction/any_plan_bound.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "planner/search/search.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

TEST(AnyPlanBound, NoPlanOfAnExhaustiveSearchTakesLess) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(seed);
    question.options.keep = 0;
    const Setting setting{question.profile, question.cluster};
    // By devices used, micro-batch size and cached prefix: the largest bound that some plan has,
    // which must hold for all of them.
    std::map<std::tuple<int, int, bool>, LowerBound> bounds;
    const Ranking all = search_plans(setting, question.options);
    const auto key = [](const Plan& plan) {
      std::set<DeviceId> devices;
      for (const Pipeline& pipeline : plan.pipelines) {
        for (const Stage& stage : pipeline.stages) {
          devices.insert(stage.devices.begin(), stage.devices.end());
        }
      }
      return std::tuple(static_cast<int>(devices.size()), plan.micro_batch_size,
                        plan.cache_frozen_prefix);
    };
    for (const Candidate& candidate : all.candidates) {
      if (candidate.infeasible) continue;
      const LowerBound bound = bound_any_plan(candidate.plan, setting);
      LowerBound& known = bounds[key(candidate.plan)];
      if (bound.time > known.time) known = bound;
    }
    for (const Candidate& candidate : all.candidates) {
      if (candidate.infeasible) continue;
      ++compared;
      EXPECT_LE(bounds[key(candidate.plan)].time, candidate.makespan) << summarize(candidate.plan);
    }
  }
  EXPECT_GT(compared, 1000);
}

Plan one_stage(const ModelProfile& profile, int micro_batches) {
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = micro_batches;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  plan.pipelines = {make_pipeline(static_cast<int>(profile.layers.size()), {}, {DeviceId{0}},
                                  {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  return plan;
}

TEST(AnyPlanBound, OneDeviceWithoutOverheadsMeetsIt) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(20), microseconds(30));
  const Cluster cluster = make_uniform_cluster(1, Bytes{1'000'000}, {microseconds{5}, {}});
  const Plan plan = one_stage(profile, 3);
  const Setting setting{profile, cluster};
  const LowerBound bound = bound_any_plan(plan, setting);
  EXPECT_EQ(bound.name, "total-work");
  // The first layer has no I: nothing reads the gradient of its input.
  EXPECT_EQ(bound.time, microseconds(3 * (4 * 60 - 20)));
  EXPECT_EQ(simulate_plan(plan, setting).makespan, bound.time);
}

TEST(AnyPlanBound, WithMoreDevicesThanWorkOneMicroBatchDecides) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(20), microseconds(30));
  const Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, {microseconds{5}, {}});
  Plan plan = one_stage(profile, 1);
  plan.pipelines = {make_pipeline(4, {LayerId{1}, LayerId{2}, LayerId{3}},
                                  {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}},
                                  {MicroBatchId{0}, MicroBatchId{0}})};
  const LowerBound bound = bound_any_plan(plan, {profile, cluster});
  EXPECT_EQ(bound.name, "one-micro-batch");
  EXPECT_EQ(bound.time, microseconds(4 * 10 + 3 * 20));
}

// Two devices, of which one takes three times as long, do what 4/3 devices do; the bound is met by
// a plan that gives the fast one three of four micro-batches.
TEST(AnyPlanBound, ASlowedDeviceDoesItsShareOfTheWorkAlone) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(20), microseconds(30));
  Cluster cluster = make_uniform_cluster(2, Bytes{1'000'000}, {});
  cluster.devices[1].time_ppm = 3'000'000;
  Plan plan = one_stage(profile, 4);
  plan.pipelines = {make_pipeline(4, {}, {DeviceId{0}}, {MicroBatchId{0}, MicroBatchId{2}}),
                    make_pipeline(4, {}, {DeviceId{1}}, {MicroBatchId{3}, MicroBatchId{3}})};
  const Setting setting{profile, cluster};
  const Duration all{microseconds(4 * (4 * 60 - 20))};
  const LowerBound bound = bound_any_plan(plan, setting);
  EXPECT_EQ(bound.name, "total-work");
  EXPECT_LE(bound.time, all * 3 / 4);
  EXPECT_GE(bound.time, all * 3 / 4 - microseconds(1));
  EXPECT_EQ(simulate_plan(plan, setting).makespan, all * 3 / 4);
  // One of the two devices alone may be the fast one.
  plan = one_stage(profile, 4);
  plan.pipelines.front().stages.front().devices = {DeviceId{1}};
  EXPECT_EQ(bound_any_plan(plan, setting).time, all);
}

// One layer on each of four devices, and one micro-batch.
Plan spread(const ModelProfile& profile) {
  Plan plan = one_stage(profile, 1);
  plan.pipelines = {make_pipeline(4, {LayerId{1}, LayerId{2}, LayerId{3}},
                                  {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}},
                                  {MicroBatchId{0}, MicroBatchId{0}})};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kZbH1};
  return plan;
}

TEST(AnyPlanBound, BranchesRunBesideEachOther) {
  ModelProfile profile = make_chain(4, microseconds(10), microseconds(20), microseconds(1));
  //   1
  // 0   3    with an edge from 0 to both of the middle and from both to 3
  //   2
  const Edge edge = profile.edges.front();
  profile.edges.clear();
  for (const auto& [from, to] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 3}}) {
    profile.edges.push_back({LayerId{from}, LayerId{to}, edge.kind, edge.tensor_bytes_per_sample});
  }
  const Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, {});
  const Setting setting{profile, cluster};
  const LowerBound bound = bound_any_plan(spread(profile), setting);
  EXPECT_EQ(bound.time, microseconds(3 * 10 + 2 * 20)) << bound.name;
  EXPECT_LE(bound.time, simulate_plan(spread(profile), setting).makespan);
}

TEST(AnyPlanBound, AForwardThatIsRunAgainMaySaveNothing) {
  ModelProfile profile = make_chain(4, microseconds(100), microseconds(20), microseconds(1));
  for (Layer& layer : profile.layers) {
    for (CostSample& cost : layer.costs) cost.forward_frozen = cost.forward / 10;
  }
  const Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, {});
  const Setting setting{profile, cluster};
  Plan plan = spread(profile);
  for (Stage& stage : plan.pipelines[0].stages) stage.memory = MemoryPolicy::kRecompute;
  const LowerBound bound = bound_any_plan(plan, setting);
  EXPECT_LE(bound.time, simulate_plan(plan, setting).makespan) << bound.name;
}

}  // namespace
}  // namespace frazil
