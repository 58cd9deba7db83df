// Tests the search for plans whose devices are steps ahead of each other against the simulator
// under every cut, on blockwise distillation.

#include "planner/search/rankings/windows.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "planner/actions/validate_plan.h"
#include "planner/partition/pipe_bd.h"
#include "planner/plan/step_window.h"
#include "planner/search/rankings/hybrid_starts.h"
#include "planner/search/rankings/rank_plans.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/support/for_each_cuts.h"
#include "tests/support/distillation_profile.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr Bytes kAmple{1 << 30};
constexpr int kBatch = 8;
constexpr int kSeeds = 12;

ModelProfile draw_blocks(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<DistillationBlock> blocks(3 + random() % 3);
  for (DistillationBlock& block : blocks) {
    block.teacher = microseconds(1 + random() % 20);
    block.student = microseconds(1 + random() % 60);
  }
  return make_distillation_profile(blocks);
}

Cluster make_devices(int count) {
  return make_uniform_cluster(count, kAmple, {microseconds(5), BytesPerSecond{100'000'000}});
}

SearchOptions question_over(const ModelProfile& profile, int steps_ahead) {
  SearchOptions options = ranking_options();
  options.batch_size = kBatch;
  options.micro_batch_sizes = {kBatch};
  options.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  options.steps_ahead = steps_ahead;
  return options;
}

Ranking rank_over(Setting setting, const SearchOptions& options) {
  PlanSearch search(setting);
  return rank_plans(search, options, 0);
}

// Returns the least time of a step over every cut into a stage for each device.
Duration try_every_cut(Setting setting, int steps_ahead) {
  const auto devices = static_cast<int>(setting.cluster().devices.size());
  std::vector<DeviceId> used;
  for (int d = 0; d < devices; ++d) used.emplace_back(d);
  Duration least = Duration::max();
  const auto layers = static_cast<int>(setting.profile().layers.size());
  for_each_cuts(layers, devices - 1, [&](const std::vector<LayerId>& cuts) {
    Plan plan;
    plan.model_hash = model_hash(setting.profile());
    plan.batch_size = kBatch;
    plan.micro_batch_size = kBatch;
    plan.mask = FreezeMask::all_active(static_cast<int>(setting.profile().blocks.size()));
    plan.pipelines = {make_pipeline(layers, cuts, used, {MicroBatchId{0}, MicroBatchId{0}})};
    plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
    plan.steps_ahead = steps_ahead;
    least = std::min(least, judge_plan(plan, setting, false).makespan);
  });
  return least;
}

TEST(WindowSearch, OnTwoDevicesAreNoSlowerThanTheFastestOfEveryCut) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ModelProfile profile = draw_blocks(seed);
    const Cluster cluster = make_devices(2);
    const Ranking ranking = rank_over({profile, cluster}, question_over(profile, kDecoupledSteps));
    ASSERT_TRUE(ranking.ahead && ranking.ahead->fastest);
    // Less where a device has several stages, which are no cut into a stage for each device.
    EXPECT_LE(*ranking.ahead->fastest, try_every_cut({profile, cluster}, kDecoupledSteps));
    EXPECT_LE(ranking.fastest()->makespan, *ranking.ahead->fastest);
  }
}

TEST(WindowSearch, OnThreeDevicesAreNeverSlowerThanInStepAndNearTheFastestOfEveryCut) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ModelProfile profile = draw_blocks(seed);
    const Cluster cluster = make_devices(3);
    const Ranking ranking = rank_over({profile, cluster}, question_over(profile, kDecoupledSteps));
    ASSERT_TRUE(ranking.ahead && ranking.ahead->fastest);
    EXPECT_LE(*ranking.ahead->fastest, try_every_cut({profile, cluster}, 0));
    EXPECT_LE(*ranking.ahead->fastest * 10,
              try_every_cut({profile, cluster}, kDecoupledSteps) * 11);
  }
}

// Pipe-BD's automatic hybrid distribution tries every cut into stages of any numbers of devices,
// which share a batch by samples, and is given the same steps ahead here.
TEST(WindowSearch, FindsPlansNoSlowerThanThoseOfAutomaticHybridDistribution) {
  constexpr int kShared = 12;  // samples of a batch, which 1, 2, 3 and 4 devices share evenly
  int faster = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const ModelProfile profile = draw_blocks(seed);
    const FreezeMask mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
    for (int devices = 2; devices <= 4; ++devices) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", devices " + std::to_string(devices));
      const Cluster cluster = make_devices(devices);
      const auto hybrid =
          search_hybrid_plans(measure_hybrid_with_memory({profile, cluster}, mask, kShared));
      ASSERT_TRUE(hybrid);
      const Plan plan = make_hybrid_plan(*hybrid, profile, mask, kShared);
      const Candidate theirs = judge_plan(plan, {profile, cluster}, false);
      ASSERT_FALSE(theirs.infeasible);
      SearchOptions options = question_over(profile, kDecoupledSteps);
      options.batch_size = kShared;
      options.micro_batch_sizes = {1, 2, 3, 4, 6, 12};
      const Ranking ranking = rank_over({profile, cluster}, options);
      ASSERT_TRUE(ranking.ahead && ranking.ahead->fastest);
      EXPECT_LE(*ranking.ahead->fastest, theirs.makespan);
      if (*ranking.ahead->fastest < theirs.makespan) ++faster;
    }
  }
  EXPECT_GT(faster, kSeeds);
}

TEST(WindowSearch, StartFromNoHybridThatTheQuestionForbids) {
  const ModelProfile profile = make_distillation_profile({{microseconds(20), microseconds(60)},
                                                          {microseconds(10), microseconds(20)},
                                                          {microseconds(10), microseconds(20)}});
  SearchOptions options = question_over(profile, kDecoupledSteps);
  const auto starts = [&](int devices, const auto& change) {
    SearchOptions changed = options;
    changed.micro_batch_sizes = {2};
    change(changed);
    const Cluster cluster = make_devices(devices);
    return list_hybrid_starts({profile, cluster}, changed);
  };
  const auto as_it_is = [](SearchOptions&) {};
  ASSERT_EQ(starts(3, as_it_is).size(), 1U);
  EXPECT_EQ(starts(3, as_it_is)[0].pipelines[0].stages[0].devices.size(), 2U) << "share block 0";
  EXPECT_TRUE(starts(1, as_it_is).empty());
  EXPECT_TRUE(starts(kBatch + 1, as_it_is).empty());

  const Plan plan = starts(3, [](SearchOptions& one) {
                      one.schedules = {ScheduleKind::kOneForwardOneBackward};
                    }).at(0);
  EXPECT_EQ(std::get<NamedSchedule>(plan.schedule).kind, ScheduleKind::kOneForwardOneBackward);
  EXPECT_TRUE(starts(3, [](SearchOptions& one) { one.schedules = {ScheduleKind::kZbH1}; }).empty());
  EXPECT_TRUE(starts(3, [](SearchOptions& one) { one.max_stages = 1; }).empty());
  EXPECT_TRUE(starts(3, [](SearchOptions& one) { one.micro_batch_sizes = {3}; }).empty());
  // Three blocks on as many devices are left, and on four none.
  for (const auto& forbid : std::vector<std::function<void(SearchOptions&)>>{
           [](SearchOptions& one) { one.max_replicas = 1; },
           [](SearchOptions& one) { one.shared_effort = 0; },
           [](SearchOptions& one) { one.micro_batch_sizes = {kBatch}; }}) {
    const std::vector<Plan> left = starts(3, forbid);
    ASSERT_EQ(left.size(), 1U);
    for (const Stage& stage : left[0].pipelines[0].stages) EXPECT_EQ(stage.devices.size(), 1U);
    EXPECT_TRUE(starts(4, forbid).empty());
  }
}

TEST(WindowSearch, AreNotLookedForInStepUnderAClipOrWithOneLoss) {
  ModelProfile profile = draw_blocks(1);
  const Cluster cluster = make_devices(2);
  EXPECT_FALSE(rank_over({profile, cluster}, question_over(profile, 0)).ahead);
  SearchOptions clipping = question_over(profile, kDecoupledSteps);
  clipping.clip = true;
  EXPECT_FALSE(rank_over({profile, cluster}, clipping).ahead);
  for (std::size_t l = 0; l + 1 < profile.layers.size(); ++l) profile.layers[l].has_loss = false;
  EXPECT_FALSE(rank_over({profile, cluster}, question_over(profile, kDecoupledSteps)).ahead);
}

class WindowSearchVerb : public testing::Test {
 protected:
  WindowSearchVerb() {
    write_model_profile(make_distillation_profile({{microseconds(20), microseconds(200)},
                                                   {microseconds(20), microseconds(180)},
                                                   {microseconds(20), microseconds(220)}}),
                        folder_.path("model.json"));
    Cluster cluster = make_devices(2);
    for (Device& device : cluster.devices) device.step_overhead = microseconds(10);
    write_cluster(cluster, folder_.path("cluster.json"));
  }
  nlohmann::json plan(const std::string& flags) const {
    const Outcome told = folder_.run("plan",
                                     "--profile model.json --cluster cluster.json --batch 64 "
                                     "--micro-batch 64 --out plan.json --json " +
                                         flags);
    EXPECT_EQ(told.code, 0) << told.err;
    return nlohmann::json::parse(told.out);
  }

  const ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(WindowSearchVerb, PlansADistillationWithStepsAheadAndSimulatesToTheSameTime) {
  const nlohmann::json in_step = plan("--steps-ahead 0");
  EXPECT_FALSE(in_step.contains("steps_ahead_tried"));
  const nlohmann::json ahead = plan("--explain");
  EXPECT_GT(ahead["steps_ahead_tried"], 0);
  EXPECT_EQ(ahead["proven"], false);
  const std::int64_t step = ahead["feasible"][0]["makespan_ns"];
  EXPECT_EQ(ahead["steps_ahead_fastest_ns"], step);
  EXPECT_LT(step, in_step["feasible"][0]["makespan_ns"]);
  EXPECT_EQ(ahead["feasible"][0]["steps_ahead"], kDecoupledSteps);
  EXPECT_FALSE(in_step["feasible"][0].contains("steps_ahead"));
  const Outcome simulated = folder_.run(
      "simulate", "--plan plan.json --profile model.json --cluster cluster.json --json");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_EQ(nlohmann::json::parse(simulated.out)["step_ns"], step);
}

}  // namespace
}  // namespace frazil
