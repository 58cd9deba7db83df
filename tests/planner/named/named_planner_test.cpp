#include "planner/named/named_planner.h"
#include "planner/named/pipedream_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <sstream>
#include <string>

#include "planner/actions/validate_plan.h"
#include "planner/partition/pipe_bd.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/distillation_profile.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr std::array kAll = {NamedPlanner::kPipeBd,     NamedPlanner::kPipeBdMemory,
                             NamedPlanner::kTorchgpipe, NamedPlanner::kPipeDream,
                             NamedPlanner::kDynMo,      NamedPlanner::kDynMoDiffusion,
                             NamedPlanner::kUniform};

std::vector<int> cuts_of(const Plan& plan) {
  std::vector<int> cuts;
  for (const Stage& stage : plan.pipelines.front().stages) {
    if (stage.layers.front().first.value > 0) cuts.push_back(stage.layers.front().first.value);
  }
  return cuts;
}

TEST(NamedPlanners, HaveNamesThatFindThem) {
  for (const NamedPlanner planner : kAll) {
    EXPECT_EQ(find_planner(planner_name(planner)), planner);
    EXPECT_NE(list_planners().find(planner_name(planner)), std::string::npos);
  }
  EXPECT_EQ(find_planner("PipeDream"), NamedPlanner::kPipeDream);
  EXPECT_EQ(find_planner("alpa"), std::nullopt);
}

// Models, masks, batches and clusters are random; every answer is a valid plan or a refusal.
TEST(NamedPlanners, MakePlansThatTheSimulatorTakes) {
  int judged = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int layers = static_cast<int>(random() % 9) + 1;
    ModelProfile profile = make_chain(layers, microseconds(10), microseconds(10), microseconds(10));
    for (Layer& layer : profile.layers) {
      const auto factor = static_cast<int>(random() % 5) + 1;
      for (CostSample& cost : layer.costs) {
        cost.forward *= factor;
        cost.backward_input *= factor;
      }
    }
    Cluster cluster = make_uniform_cluster(static_cast<int>(random() % 6) + 1, Bytes{1'000'000},
                                           {microseconds(1), {1'000'000'000}});
    if (cluster.devices.size() == 4) {
      cluster.hosts.push_back({"other", Bytes{}});
      cluster.devices[2].host = HostId{1};
      cluster.devices[3].host = HostId{1};
    }
    FreezeMask mask = FreezeMask::all_active(layers);
    if (layers > 2 && seed % 3 == 0) mask = FreezeMask::frozen_prefix(layers, BlockId{1});
    const int micro_batch = static_cast<int>(random() % 3) + 1;
    const BatchOptions batch{static_cast<int>(random() % 24) + 6, micro_batch};
    for (const NamedPlanner planner : kAll) {
      SCOPED_TRACE(planner_name(planner));
      const Plan plan = make_named_plan(planner, {profile, cluster}, mask, batch);
      EXPECT_NO_THROW(validate(plan, {profile, cluster}, "plan"));
      EXPECT_EQ(plan, make_named_plan(planner, {profile, cluster}, mask, batch));
      const Candidate candidate = judge_plan(plan, {profile, cluster}, false);
      EXPECT_FALSE(candidate.infeasible) << candidate.infeasible->reason;
      EXPECT_GT(candidate.makespan.count(), 0);
      ++judged;
    }
  }
  EXPECT_EQ(judged, 60 * 7);
}

TEST(NamedPlanners, CutChainsAsTheirAlgorithmsDo) {
  ModelProfile profile = make_chain(6, microseconds(1), microseconds(1), microseconds(1));
  for (const std::size_t heavy : {std::size_t{4}, std::size_t{5}}) {
    for (CostSample& cost : profile.layers[heavy].costs) cost.forward *= 7;
  }
  const Cluster cluster = make_uniform_cluster(3, Bytes{1'000'000}, {});
  const FreezeMask mask = FreezeMask::all_active(6);
  const auto cuts = [&](NamedPlanner planner) {
    return cuts_of(make_named_plan(planner, {profile, cluster}, mask, {8, 1}));
  };
  EXPECT_EQ(cuts(NamedPlanner::kUniform), (std::vector<int>{2, 4}));
  EXPECT_EQ(cuts(NamedPlanner::kDynMo), (std::vector<int>{4, 5}));
  EXPECT_EQ(cuts(NamedPlanner::kTorchgpipe), (std::vector<int>{3, 5}));
}

// There are two hosts of two devices. Each host cuts the model in two, because the gradients of
// both layers are dear; the hosts are replicas, because the boundary is dearer than their share of
// the gradients.
TEST(NamedPlanners, KeepAMicroBatchOfPipeDreamOnItsHost) {
  ModelProfile profile = make_chain(2, microseconds(100), microseconds(50), microseconds(50));
  Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, {{}, {1'000'000'000}});
  cluster.hosts.push_back({"other", Bytes{}});
  for (const std::size_t d : {std::size_t{2}, std::size_t{3}}) cluster.devices[d].host = HostId{1};
  for (Layer& layer : profile.layers) layer.parameters = Bytes{50'000};
  profile.edges.front().tensor_bytes_per_sample = {Bytes{90'000}};
  const Plan plan = make_named_plan(NamedPlanner::kPipeDream, {profile, cluster},
                                    FreezeMask::all_active(2), {16, 1});
  EXPECT_NO_THROW(validate(plan, {profile, cluster}, "plan"));
  const auto& stages = plan.pipelines.front().stages;
  ASSERT_EQ(stages.size(), 2U) << summarize(plan);
  EXPECT_EQ(stages[0].devices, (std::vector<DeviceId>{DeviceId{0}, DeviceId{2}}));
  EXPECT_EQ(stages[1].devices, (std::vector<DeviceId>{DeviceId{1}, DeviceId{3}}));
  for (int m = 0; m < 16; ++m) {
    const DeviceId first = device_of(plan.pipelines.front(), StageId{0}, MicroBatchId{m});
    const DeviceId second = device_of(plan.pipelines.front(), StageId{1}, MicroBatchId{m});
    EXPECT_EQ(cluster.devices[first.index()].host, cluster.devices[second.index()].host);
  }
}

// Layers 1 and 3 pick an item of layers 0 and 2, and no layer reads them.
TEST(NamedPlanners, LeaveUnreadItemsOutOfPipeDreamsSearch) {
  ModelProfile profile = make_chain(5, microseconds(100), microseconds(50), microseconds(50));
  profile.layers[1].name = "node2 __getitem__(0)";
  profile.layers[3].name = "__getitem__(1)";
  for (const std::size_t item : {std::size_t{1}, std::size_t{3}}) {
    for (CostSample& cost : profile.layers[item].costs) {
      cost.forward = cost.forward_frozen = cost.backward_input = cost.backward_weight =
          cost.backward_weight_alone = Duration{0};
    }
  }
  Edge edge = profile.edges.front();
  profile.edges.clear();
  for (const auto& [from, to] : {std::pair(0, 1), {0, 2}, {2, 3}, {2, 4}}) {
    edge.from = LayerId{from};
    edge.to = LayerId{to};
    profile.edges.push_back(edge);
  }
  // Replicas are dear, so each of the other layers is a stage.
  for (Layer& layer : profile.layers) layer.parameters = Bytes{1'000'000};
  const Cluster cluster = make_uniform_cluster(3, Bytes{1'000'000}, {{}, {1'000'000'000}});
  const FreezeMask mask = FreezeMask::all_active(5);
  const PipeDreamPlan made = make_pipedream_plan({profile, cluster}, mask, 12, 1);
  EXPECT_EQ(made.left_out, 2);
  EXPECT_EQ(made.bottleneck, microseconds(200));
  EXPECT_EQ(made.plan.pipelines.front().stages.size(), 3U);
  EXPECT_NO_THROW(validate(made.plan, {profile, cluster}, "plan"));
  for (const Stage& stage : made.plan.pipelines.front().stages) {
    EXPECT_EQ(holds_layer(stage, LayerId{1}), holds_layer(stage, LayerId{0}));
    EXPECT_EQ(holds_layer(stage, LayerId{3}), holds_layer(stage, LayerId{2}));
  }
  // A layer of that name which is read, or one that is all there is, stays.
  edge.from = LayerId{1};
  edge.to = LayerId{2};
  profile.edges.insert(profile.edges.begin() + 2, edge);
  EXPECT_EQ(make_pipedream_plan({profile, cluster}, mask, 12, 1).left_out, 1);
  ModelProfile single = make_chain(1, microseconds(100), microseconds(50), microseconds(50));
  single.layers[0].name = "__getitem__(0)";
  EXPECT_EQ(make_pipedream_plan({single, cluster}, FreezeMask::all_active(1), 12, 1).left_out, 0);
}

TEST(PipeBdPlans, TakeAPairOfTeacherAndStudentAsAUnit) {
  const ModelProfile profile = make_distillation_profile({{microseconds(5), microseconds(40)},
                                                          {microseconds(5), microseconds(20)},
                                                          {microseconds(5), microseconds(10)}});
  EXPECT_NO_THROW(validate(profile, "profile"));
  EXPECT_EQ(find_units(profile), (std::vector<int>{0, 2, 4, 6}));
  const ModelProfile chain = make_chain(3, microseconds(1), microseconds(1), microseconds(1));
  EXPECT_EQ(find_units(chain), (std::vector<int>{0, 1, 2, 3}));
  const Cluster cluster = make_uniform_cluster(3, Bytes{1'000'000}, {microseconds(7), {1'000'000}});
  const HybridCosts costs = measure_hybrid({profile, cluster}, FreezeMask::all_active(3), 6);
  EXPECT_EQ(costs.step[0],
            (std::vector<Duration>{microseconds(270), microseconds(150), microseconds(90)}));
  EXPECT_EQ(costs.step[1],
            (std::vector<Duration>{microseconds(135), microseconds(75), microseconds(45)}));
  // A ring of two takes 2 steps of 7 us and moves 1000 bytes at 1 byte per us.
  EXPECT_EQ(costs.reduce[1][0], microseconds(14 + 1000));
  EXPECT_EQ(costs.reduce[0][0], Duration{0});
  // Two edges carry 20 bytes for 6 samples.
  EXPECT_EQ(costs.relay, (std::vector<Duration>{microseconds(247), microseconds(247)}));
}

// Two devices share block 0. The relay leaves before the students train, so the last device waits
// for the teacher alone: 10 us of block 0 (half a batch), 20 us of its own, then 160 us. Without a
// barrier it waits so long in the first step of a window alone.
TEST(PipeBdPlans, RelayWhatTheTeacherPutsOutBeforeStudentsTrain) {
  const ModelProfile profile = make_distillation_profile(
      {{microseconds(5), microseconds(40)}, {microseconds(5), microseconds(40)}});
  const Cluster cluster = make_uniform_cluster(3, Bytes{1'000'000}, {});
  const FreezeMask mask = FreezeMask::all_active(2);
  const HybridPlan hybrid{{2, 1}, {0, 1, 2}, Duration{0}};
  Plan plan = make_hybrid_plan(hybrid, profile, mask, 4);
  EXPECT_NO_THROW(validate(plan, {profile, cluster}, "plan"));
  ASSERT_EQ(plan.pipelines.front().stages.size(), 4U);
  const Candidate decoupled = judge_plan(plan, {profile, cluster}, false);
  ASSERT_FALSE(decoupled.infeasible) << decoupled.infeasible->reason;
  EXPECT_EQ(decoupled.makespan, (Duration{microseconds(10)} + microseconds(20 + 160) * 32) / 32);
  plan.steps_ahead = 0;
  EXPECT_EQ(judge_plan(plan, {profile, cluster}, false).makespan, microseconds(10 + 20 + 160));
  // The search's own cost is the largest stage alone, without the wait for the first relay.
  EXPECT_EQ(hybrid_cost(measure_hybrid({profile, cluster}, mask, 4), {2, 1}, {0, 1, 2}),
            microseconds(180));
}

TEST(PipeBdPlans, KeepWithinMemoryWhenAsked) {
  const ModelProfile profile = make_distillation_profile(
      {{microseconds(5), microseconds(40)}, {microseconds(5), microseconds(40)}});
  // A student holds 1000 bytes of parameters, as many of gradients, and a stash of 100 per sample.
  const FreezeMask mask = FreezeMask::all_active(2);
  const Cluster roomy = make_uniform_cluster(2, Bytes{2900}, {});
  const HybridCosts costs = measure_hybrid_with_memory({profile, roomy}, mask, 8);
  EXPECT_EQ(costs.memory(1, 0, 1), Bytes{2800});
  EXPECT_EQ(costs.memory(2, 0, 2), Bytes{4800});
  const auto plan_on = [&](std::int64_t limit) {
    const Cluster cluster = make_uniform_cluster(2, Bytes{limit}, {});
    return make_named_plan(NamedPlanner::kPipeBdMemory, {profile, cluster}, mask, {8, 8});
  };
  EXPECT_EQ(plan_on(2900).pipelines.front().stages.size(), 4U);
  EXPECT_THROW(plan_on(2700), InfeasibleError);
  const Cluster tiny = make_uniform_cluster(2, Bytes{1}, {});
  const auto free_plan = make_named_plan(NamedPlanner::kPipeBd, {profile, tiny}, mask, {8, 8});
  EXPECT_EQ(free_plan.pipelines.front().stages.size(), 4U);
}

TEST(PipeBdPlans, NeedASampleForEachDevice) {
  const ModelProfile profile = make_chain(2, microseconds(1), microseconds(1), microseconds(1));
  const Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, {});
  EXPECT_THROW(
      make_named_plan(NamedPlanner::kPipeBd, {profile, cluster}, FreezeMask::all_active(2), {3, 1}),
      InfeasibleError);
}

class NamedPlannerVerb : public testing::Test {
 protected:
  void SetUp() override {
    write_model_profile(make_chain(6, microseconds(10), microseconds(10), microseconds(10)),
                        folder_.path("model.json"));
    write_cluster(make_uniform_cluster(3, Bytes{1'000'000}, {microseconds(5), {}}),
                  folder_.path("cluster.json"));
    write_cluster(make_uniform_cluster(3, Bytes{4'000}, {}), folder_.path("tight.json"));
  }
  Outcome plan(const std::string& arguments) const {
    return folder_.run("plan", "--profile model.json --batch 12 " + arguments);
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(NamedPlannerVerb, LaysANamedPlanBesideTheBest) {
  for (const NamedPlanner planner : kAll) {
    const std::string name(planner_name(planner));
    SCOPED_TRACE(name);
    const Outcome outcome = plan("--cluster cluster.json --out plan.json --json --planner " + name);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    JsonFields answer(parse_json(outcome.out, "answer"));
    EXPECT_EQ(answer.required("planner").text(), name);
    const double ratio = answer.required("ratio").real(0, 100);
    JsonFields named(answer.required("named"));
    JsonFields own(answer.required("frazil"));
    const auto makespan = named.required("makespan_ns").integer(1, 1'000'000'000);
    EXPECT_NEAR(ratio,
                static_cast<double>(makespan) /
                    static_cast<double>(own.required("makespan_ns").integer(1, 1'000'000'000)),
                1e-12);
    const Outcome simulated = folder_.run(
        "simulate", "--plan plan.json --profile model.json --cluster cluster.json --json");
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    EXPECT_NE(simulated.out.find(std::to_string(makespan)), std::string::npos);
  }
  const Outcome text = plan("--cluster cluster.json --planner uniform");
  EXPECT_NE(text.out.find("times as long as frazil's best"), std::string::npos) << text.out;
}

TEST_F(NamedPlannerVerb, SaysWhereTheNamedPlanDoesNotFit) {
  const Outcome outcome = plan("--cluster tight.json --planner uniform --out plan.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("the plan of uniform cannot run"), std::string::npos) << outcome.err;
  EXPECT_EQ(folder_.count_files(), 3U);
}

TEST_F(NamedPlannerVerb, ListsItsPlannersAndRefusesOthers) {
  const Outcome help = folder_.run("plan", "--planner help");
  EXPECT_EQ(help.code, 0) << help.err;
  EXPECT_EQ(help.out, list_planners());
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const Outcome unknown = plan("--cluster cluster.json --planner alpa");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("--planner alpa"), std::string::npos);
  EXPECT_EQ(plan("--cluster cluster.json --planner uniform --top 3").code, 2);
}

}  // namespace
}  // namespace frazil
