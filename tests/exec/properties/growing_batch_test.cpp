// PipeTransformer's batch grows: each pipeline keeps its share, so that a step with n times the
// pipelines that the run began with takes n batches.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "exec/models/vit.h"
#include "exec/run/run.h"
#include "exec/train/trainer.h"
#include "planner/prediction/plan_notation.h"
#include "planner/search/rankings/rank_plans.h"
#include "profiles/error.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

// The whole model fits two devices together; once frozen in part, it fits each of them.
TrainOptions growing_options() {
  TrainOptions options;
  options.config = tiny_config();
  options.config.batch_growth = BatchGrowth::kWithPipelines;
  options.config.data.train_samples = 44;  // 6 batches an epoch, the last of 4
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(Bytes{600'000});
  return options;
}

TrainResult run(const TrainOptions& options) { return train(options, load_data(options.config)); }

TEST(GrowingBatch, KeepsThePipelinesShareWhereTheyBecomeMore) {
  const TrainResult result = run(growing_options());
  ASSERT_EQ(result.phases.size(), 3U);
  for (const TrainPhase& phase : result.phases) {
    const auto growth = static_cast<int>(phase.plan.pipelines.size());
    EXPECT_EQ(phase.plan.batch_size, 8 * growth) << summarize(phase.plan);
  }
  const TrainPhase& grown = result.phases[2];
  ASSERT_EQ(grown.plan.pipelines.size(), 2U) << summarize(grown.plan);
  // The epoch's 44 samples make two full steps of 16, and a last one of 12.
  EXPECT_EQ(grown.first_step, 12);
  EXPECT_EQ(grown.steps, 2);
  EXPECT_EQ(result.phases[0].steps, 5);
}

// Trains with nothing but Run, told what the phases say.
std::uint64_t train_by_hand(const TrainOptions& options, const std::vector<TrainPhase>& phases) {
  const RunConfig& config = options.config;
  const Dataset data = load_data(config);
  Run run(make_model(config.model), config.optimizer, config.seed, 2);
  std::size_t phase = 0;
  for (int epoch = 0; epoch < config.epochs; ++epoch) {
    const auto order = epoch_order(44, config.seed, epoch);
    std::int64_t first = 0;
    while (first < 44) {
      const Step step = epoch * 6 + first / 8;
      if (phase < phases.size() && phases[phase].first_step == step) {
        run.transition_to(phases[phase++].plan);
      }
      const std::int64_t count = std::min<std::int64_t>(run.plan().batch_size, 44 - first);
      run.step(step, learning_rate(config.optimizer, step, 18),
               gather_micro_batches(data.train, order, first, count, config.micro_batch_size));
      first += count;
    }
  }
  return run.weight_hash();
}

TEST(GrowingBatch, IsThatOfAHandWrittenLoopOverTheSamePlans) {
  const TrainOptions options = growing_options();
  const TrainResult grown = run(options);
  EXPECT_EQ(grown.weight_hash, train_by_hand(options, grown.phases));
  TrainOptions fixed = options;
  fixed.config.batch_growth = BatchGrowth::kNone;
  const TrainResult kept = run(fixed);
  EXPECT_EQ(kept.weight_hash, train_by_hand(fixed, kept.phases));
  EXPECT_NE(grown.weight_hash, kept.weight_hash) << "it learns otherwise";
  EXPECT_EQ(run(options).weight_hash, grown.weight_hash);
}

// The fastest of the best plans for each number of pipelines is taken. It is what the planner finds
// for each, and no slower than any plan that an exhaustive search simulates, whose cuts are not
// searched.
TEST(GrowingBatch, TakesThePlanThatIsFastestBySample) {
  const TrainOptions options = growing_options();
  const TrainResult result = run(options);
  for (const TrainPhase& phase : result.phases) {
    const auto find_fastest = [&](SearchOptions search) {
      double fastest = 0;  // samples per second
      for (const int growth : {1, 2}) {
        search.batch_size = 8 * growth;
        search.micro_batch_sizes = {4};
        search.mask = phase.plan.mask;
        search.max_replicas = growth;
        for (const Candidate& each :
             search_plans({options.profile, options.cluster}, search).candidates) {
          if (each.infeasible || parallel_shape(each.plan).replicas != growth) continue;
          fastest = std::max(fastest,
                             8.0 * growth / std::chrono::duration<double>(each.makespan).count());
        }
      }
      return fastest;
    };
    SearchOptions every = ranking_options();
    every.keep = 0;
    every.effort = every.cut_effort = every.shared_effort = 0;
    const double own = phase.predicted_samples_per_second();
    const double fastest = std::max(find_fastest(ranking_options()), find_fastest(every));
    if (&phase == &result.phases.front()) {
      // The first plan is the simplest within the noise, as frazil plan ranks it.
      EXPECT_GE(own * (1 + kNoisePpm / 1e6), fastest) << summarize(phase.plan);
    } else {
      EXPECT_DOUBLE_EQ(own, fastest) << summarize(phase.plan);
    }
  }
}

TEST(GrowingBatch, IsToldOfInTheRunAndItsTrace) {
  const TrainOptions options = growing_options();
  std::string told;
  const TrainResult result =
      train(options, load_data(options.config), [&](const TrainProgress& now) {
        if (now.step == 0 && !now.event.empty()) told += now.event + "\n";
      });
  EXPECT_NE(told.find("the batch grows with the pipelines"), std::string::npos) << told;
  EXPECT_EQ(result.trace.provenance.at("batch"), "grows with the pipelines");
  TrainOptions fixed = options;
  fixed.config.batch_growth = BatchGrowth::kNone;
  EXPECT_EQ(run(fixed).trace.provenance.count("batch"), 0U);
}

// The bits of a run with checkpoints are the same under every plan; those of a growing batch follow
// from the plans.
TEST(GrowingBatch, IsRefusedWhereARunKeepsCheckpoints) {
  TrainOptions options = growing_options();
  const auto folder =
      std::filesystem::temp_directory_path() / ("frazil-growing-" + std::to_string(::getpid()));
  options.durable = DurableOptions{.folder = folder};
  try {
    run(options);
    FAIL() << "it was taken";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("a batch that grows"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace frazil
