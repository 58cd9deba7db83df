#include "planner/partition/pipe_bd.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "planner/prediction/ranking.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/distillation_profile.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr int kBatch = 20;
constexpr Bytes kLimit{7'500};

// Three units of 60, 24 and 16 ms for a batch. A student holds 1000 bytes of parameters, as many of
// gradients, and 100 of each sample.
ModelProfile make_three_units() {
  return make_distillation_profile({{microseconds(500), microseconds(2'500)},
                                    {microseconds(200), microseconds(1'000)},
                                    {microseconds(200), microseconds(600)}});
}

// An all-reduce of one student takes 6 ms, so that sharing every batch among all does not pay.
Cluster make_three_devices(Bytes limit) {
  return make_uniform_cluster(3, limit, {Duration{0}, BytesPerSecond{166'667}});
}

// Pipe-BD's code measures blocks one at a time, and a block that runs out of memory alone gets a
// time that no plan takes. Returns its costs under that rule.
HybridCosts measure_with_sentinel(const HybridCosts& with_memory) {
  constexpr Duration kSentinel = microseconds(87'654'321'000);
  HybridCosts costs = with_memory;
  for (int group = 1; group <= costs.devices; ++group) {
    for (int block = 0; block < costs.blocks; ++block) {
      if (with_memory.memory(group, block, block + 1) <= with_memory.memory_limit) continue;
      costs.step[static_cast<std::size_t>(group) - 1][static_cast<std::size_t>(block)] = kSentinel;
    }
  }
  costs.memory = nullptr;
  return costs;
}

TEST(HybridPlans, AreAcceptedBlockByBlockThoughTheirStageDoesNotFit) {
  const ModelProfile profile = make_three_units();
  const Cluster cluster = make_three_devices(kLimit);
  const FreezeMask mask = FreezeMask::all_active(3);
  const HybridCosts costs = measure_hybrid_with_memory({profile, cluster}, mask, kBatch);
  for (int block = 0; block < 3; ++block) {
    EXPECT_LE(costs.memory(1, block, block + 1), kLimit) << "each block fits alone";
  }
  const auto by_block = search_hybrid_plans(measure_with_sentinel(costs));
  ASSERT_TRUE(by_block.has_value());
  EXPECT_EQ(by_block->groups, (std::vector<int>{2, 1}));
  EXPECT_EQ(by_block->cuts, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(costs.memory(1, 1, 3), Bytes{8'000}) << "blocks 1 and 2 do not fit together";
  EXPECT_FALSE(fits_memory(costs, by_block->groups, by_block->cuts));
  const Plan refused = make_hybrid_plan(*by_block, profile, mask, kBatch);
  EXPECT_TRUE(judge_plan(refused, {profile, cluster}, /*clip=*/false).infeasible.has_value());

  for (const auto& jointly : {search_hybrid_plans(costs), find_hybrid_plan(costs)}) {
    ASSERT_TRUE(jointly.has_value());
    EXPECT_EQ(jointly->groups, (std::vector<int>{2, 1}));
    EXPECT_EQ(jointly->cuts, (std::vector<int>{0, 2, 3}));
    const Plan plan = make_hybrid_plan(*jointly, profile, mask, kBatch);
    EXPECT_FALSE(judge_plan(plan, {profile, cluster}, /*clip=*/false).infeasible.has_value());
  }
}

TEST(HybridPlans, AreRefusedByTheVerbUnlessTheirStagesFit) {
  const ProgramFolder folder("pipe-bd-joint-stages");
  write_model_profile(make_three_units(), folder.path("model.json"));
  write_cluster(make_three_devices(kLimit), folder.path("tight.json"));
  write_cluster(make_three_devices(Bytes{9'000}), folder.path("roomy.json"));
  const auto plan = [&](const std::string& cluster, const std::string& planner) {
    return folder.run("plan", "--profile model.json --batch 20 --out plan.json --cluster " +
                                  cluster + " --planner " + planner);
  };
  const Outcome refused = plan("tight.json", "pipe-bd");
  EXPECT_EQ(refused.code, 3) << refused.out;
  EXPECT_NE(refused.err.find("the plan of pipe-bd cannot run"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("memory"), std::string::npos) << refused.err;
  const Outcome within = plan("tight.json", "pipe-bd-memory");
  EXPECT_EQ(within.code, 0) << within.err;
  const Outcome simulated =
      folder.run("simulate", "--plan plan.json --profile model.json --cluster tight.json --json");
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_EQ(plan("roomy.json", "pipe-bd").code, 0) << "with room for both blocks it is accepted";
}

TEST(HybridPlans, AreRefusedInOneSentenceForMoreDevicesThanSamples) {
  const ProgramFolder folder("pipe-bd-few-samples");
  write_model_profile(make_three_units(), folder.path("model.json"));
  write_cluster(make_three_devices(Bytes{9'000}), folder.path("cluster.json"));
  const Outcome refused = folder.run(
      "plan", "--profile model.json --cluster cluster.json --batch 2 --planner pipe-bd --out p");
  EXPECT_EQ(refused.code, 3) << refused.out;
  EXPECT_EQ(refused.err,
            "frazil plan: pipe-bd shares a batch by samples, and 2 are too few for 3 devices\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path("p")));
}

}  // namespace
}  // namespace frazil
