// The profiler and the regression check take a tiny run. Their answers must have shape and sense;
// nothing is said of the machine's speed.

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/guard/movements.h"
#include "exec/profile/profiler.h"
#include "exec/profile/verify.h"
#include "planner/search/search.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

MeasuredProfile measure_tiny() {
  const RunConfig config = tiny_config();
  ProfileOptions options;
  options.micro_batch_sizes = {4, 2, 4};
  options.rounds = 1;
  options.steps = 2;
  options.warm_up_steps = 1;
  options.memory_limit = Bytes{1'000'000};
  options.command = "frazil profile";
  std::vector<std::pair<int, int>> told;
  MeasuredProfile measured =
      measure_profile(config, load_data(config), options,
                      [&](int done, int total) { told.emplace_back(done, total); });
  EXPECT_EQ(told, (std::vector<std::pair<int, int>>{{1, 2}, {2, 2}}));
  return measured;
}

TEST(Profiler, AnswersWithAProfileAndAClusterThatPlan) {
  const MeasuredProfile measured = measure_tiny();
  validate(measured.profile, "profile");
  validate(measured.cluster, "cluster");
  EXPECT_EQ(model_hash(measured.profile), model_hash(structure_of(tiny_config())));
  ASSERT_EQ(measured.cluster.devices.size(), 2U);
  EXPECT_EQ(measured.cluster.devices[0].memory_limit, Bytes{1'000'000});
  EXPECT_GT(measured.cluster.default_link.bandwidth.count, 0);
  EXPECT_EQ(measured.profile.provenance.at("command"), "frazil profile");
  SearchOptions search;
  search.batch_size = 8;
  search.micro_batch_sizes = {4};
  search.mask = FreezeMask::all_active(kSmallBlocks);
  EXPECT_NE(search_plans({measured.profile, measured.cluster}, search).best(), nullptr);
}

TEST(Profiler, MeasuresEveryLayerAtEverySizeOnce) {
  const MeasuredProfile measured = measure_tiny();
  for (std::size_t l = 0; l < measured.profile.layers.size(); ++l) {
    SCOPED_TRACE(measured.profile.layers[l].name);
    const Layer& layer = measured.profile.layers[l];
    ASSERT_EQ(layer.costs.size(), 2U);
    EXPECT_GT(layer.update.count(), 0);
    EXPECT_EQ(layer.costs[0].micro_batch_size, 2);
    EXPECT_EQ(layer.costs[1].micro_batch_size, 4);
    EXPECT_GT(layer.costs[1].stash, layer.costs[0].stash);
    for (const CostSample& cost : layer.costs) {
      EXPECT_GT(cost.forward.count(), 0);
      EXPECT_GT(cost.stash.count, 0);
      EXPECT_GE(cost.backward_weight_alone, cost.backward_weight);
      if (l == 0) {
        EXPECT_EQ(cost.backward_input.count(), 0) << "nothing wants the gradient of an image";
        EXPECT_GT(cost.backward_weight.count(), 0);
      } else {
        EXPECT_GT(cost.backward_input.count(), 0);
        EXPECT_GT(cost.backward_weight_alone.count(), 0);
      }
    }
  }
}

VerifyOptions tiny_verification() {
  VerifyOptions options;
  options.config = tiny_config();
  options.cluster = tiny_cluster(Bytes{1 << 30});
  options.plan = make_small_plan(structure_of(options.config),
                                 {.micro_batches = 4, .cuts = {{4}}, .owned = {4}});
  options.blocks = 2;
  options.steps = 1;
  options.most_foreign_cores = 1000;  // these tests share the machine
  return options;
}

TEST(Verify, GivesARatioOfTheStepAndOfEveryLayer) {
  const VerifyOptions options = tiny_verification();
  std::vector<int> told;
  const Verification verification =
      verify(options, load_data(options.config), [&](int done, int) { told.push_back(done); });
  EXPECT_EQ(told, (std::vector<int>{1, 2}));
  const ModelSpec model = make_model(options.config.model);
  ASSERT_EQ(verification.ratios.size(), model.layers.size() + 1);
  EXPECT_EQ(verification.ratios[0].name, "step");
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    EXPECT_EQ(verification.ratios[l + 1].name, model.layers[l].name);
  }
  for (const VerifiedRatio& row : verification.ratios) {
    EXPECT_EQ(row.ratio.blocks, 2);
    EXPECT_GT(row.ratio.low, 0);
    EXPECT_LE(row.ratio.low, row.ratio.median);
    EXPECT_LE(row.ratio.median, row.ratio.high);
  }
  EXPECT_GT(verification.predicted_step.count(), 0);
  EXPECT_GT(verification.measured_step.count(), 0);
}

TEST(Verify, DropsBlocksOfABusyMachineAndDecidesNothingThen) {
  VerifyOptions options = tiny_verification();
  options.most_foreign_cores = -1;  // whatever the machine does is too much
  const Verification verification = verify(options, load_data(options.config));
  EXPECT_EQ(verification.dropped_blocks, 2);
  EXPECT_TRUE(verification.ratios.empty());
  EXPECT_EQ(verification.verdict, Verdict::kInconclusive);
  EXPECT_EQ(verification.reason.find("0 of 2 blocks count, and 6 are needed; 2 of 2 blocks were "
                                     "dropped, for other programs kept "),
            0U)
      << verification.reason;
}

TEST(Verify, StopsWhereTooFewBlocksCanCount) {
  VerifyOptions options = tiny_verification();
  options.blocks = 24;
  options.most_foreign_cores = -1;
  int last = 0;
  const Verification stopped =
      verify(options, load_data(options.config), [&](int done, int) { last = done; });
  EXPECT_EQ(last, 10);
  EXPECT_EQ(stopped.measured_blocks, 10);
  EXPECT_EQ(stopped.verdict, Verdict::kInconclusive);
  EXPECT_NE(stopped.reason.find("10 of 24 blocks were dropped, "), std::string::npos);
  EXPECT_NE(stopped.reason.find(" and the last 14 were not tried (--accept-load drops none)"),
            std::string::npos)
      << stopped.reason;
}

TEST(Verify, IsHopelessWhereTheNeededBlocksAreOutOfReach) {
  EXPECT_FALSE(is_hopeless(40, 20, 9, 9));
  EXPECT_TRUE(is_hopeless(40, 20, 10, 10));
  EXPECT_FALSE(is_hopeless(40, 20, 30, 20));
  EXPECT_TRUE(is_hopeless(40, 20, 30, 21));
  EXPECT_FALSE(is_hopeless(100, 6, 24, 24));
  EXPECT_TRUE(is_hopeless(100, 6, 25, 25));
  EXPECT_TRUE(is_hopeless(8, 6, 3, 3));
  EXPECT_FALSE(is_hopeless(2, 6, 1, 1));  // all of them were too few anyway
}

TEST(Verify, CountsEachBlockWhereTheLoadIsAccepted) {
  VerifyOptions options = tiny_verification();
  options.most_foreign_cores = -1;
  options.accepts_load = true;
  const Verification verification = verify(options, load_data(options.config));
  EXPECT_EQ(verification.dropped_blocks, 0);
  EXPECT_EQ(verification.ratios.front().ratio.blocks, 2);
  EXPECT_GE(verification.counted_foreign_cores, 0);
}

TEST(Verify, PricesFrozenLayersByTheirForwardAlone) {
  VerifyOptions options = tiny_verification();
  for (int block = 0; block + 1 < kSmallBlocks; ++block) {
    options.plan.mask.set_active(BlockId{block}, false);
  }
  const Verification all = verify(tiny_verification(), load_data(options.config));
  const Verification frozen = verify(options, load_data(options.config));
  ASSERT_EQ(frozen.ratios.size(), kSmallLayers + 1U);
  // Only the head learns: most of the backward is gone from what is predicted, on any machine.
  EXPECT_GT(frozen.predicted_step.count(), 0);
  EXPECT_LT(frozen.predicted_step, all.predicted_step);
}

// A layer then runs on slices alone, never on a whole micro-batch.
TEST(Verify, PricesAStageThatSharesSamplesByItsSlices) {
  VerifyOptions options = tiny_verification();
  options.plan = make_small_plan(structure_of(options.config),
                                 {.micro_batches = 4, .cuts = {{}}, .owned = {4}});
  options.plan.reduction = options.config.reduction = ReductionMode::kFast;
  Stage& stage = options.plan.pipelines[0].stages[0];
  stage.devices = {DeviceId{0}, DeviceId{1}};
  stage.axis = DeviceAxis::kSamples;
  const Verification verification = verify(options, load_data(options.config));
  ASSERT_EQ(verification.ratios.size(), kSmallLayers + 1U) << "a row for each layer";
  for (const VerifiedRatio& row : verification.ratios) EXPECT_GT(row.ratio.low, 0) << row.name;
}

// A tenfold slower layer stands out on any machine.
TEST(Verify, SeesAPlantedSlowdown) {
  VerifyOptions options = tiny_verification();
  options.slow_layer = 3;
  options.slow_percent = 900;
  options.blocks = 5;
  options.steps = 2;
  const Verification verification = verify(options, load_data(options.config));
  ASSERT_EQ(verification.ratios.size(), kSmallLayers + 1U);
  EXPECT_LT(verification.ratios[4].ratio.median, 0.5);
}

// The layer is told apart from the others, which share the machine's own drift from run to run.
TEST(Verify, ASlowLayerStandsOutBesideTheBaselineOfAnotherRun) {
  VerifyOptions options = tiny_verification();
  options.probes_link = true;
  options.blocks = 5;
  options.steps = 2;
  const Dataset data = load_data(options.config);
  const std::vector<GuardedValue> good = sum_up(verify(options, data).series);
  const ModelSpec model = make_model(options.config.model);
  ASSERT_GE(good.size(), model.layers.size() + 2);
  EXPECT_EQ(good[0].kind, GuardedKind::kStep);
  EXPECT_EQ(good[1].kind, GuardedKind::kPrediction);
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    EXPECT_EQ(good[l + 2].kind, GuardedKind::kLayer);
    EXPECT_EQ(good[l + 2].name, model.layers[l].name);
    EXPECT_EQ(good[l + 2].blocks, 5);
  }
  const bool has_link = options.cluster.devices.size() > 1;
  EXPECT_EQ(good.size(), model.layers.size() + (has_link ? 4 : 2));
  options.slow_layer = 3;
  options.slow_percent = 2900;
  ++options.seed;
  const std::vector<Movement> movements =
      find_movements(good, sum_up(verify(options, data).series));
  const auto slowest = std::max_element(
      movements.begin(), movements.end(),
      [](const Movement& a, const Movement& b) { return a.own_ratio < b.own_ratio; });
  ASSERT_NE(slowest, movements.end());
  EXPECT_EQ(slowest->name, model.layers[3].name);
}

}  // namespace
}  // namespace frazil
