// Threads do more to each other than pass activations and gradients on: they add the uses of one
// table on several devices, share slices of micro-batches, and keep versions of weights.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/exec/models/model_plans.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

// Both stages of both replicas hold the table: four devices add its uses, and clip.
TEST(ThreadedModels, UsesOfATableOnFourDevicesGiveTheBitsOfOne) {
  const TestModel model = decoder_model();
  const std::uint64_t expected = train_two_steps(model, clipped_adamw(), {.micro_batches = 4});
  for (const MessageOrder order : {MessageOrder::kByTag, MessageOrder::kAsSent}) {
    EXPECT_EQ(train_two_steps(model, clipped_adamw(),
                              {.devices = 2, .micro_batches = 4, .replicas = 2, .order = order}),
              expected);
  }
}

struct ThreadedOutcome {
  std::uint64_t hash = 0;
  std::vector<double> losses;
  std::vector<WeightRead> reads;  // of the last step
};

ThreadedOutcome train(const Plan& plan, int devices) {
  VitConfig config = small_config();
  config.dropout = 0.1;
  Run run(make_vit(config), {}, 7, devices);
  run.transition_to(plan);
  ThreadedOutcome outcome;
  for (Step step = 0; step < 2; ++step) {
    StepResult result = run.step(step, 1e-2, small_micro_batches(step, plan.micro_batches()));
    outcome.losses.push_back(result.loss);
    outcome.reads = std::move(result.weight_reads);
  }
  outcome.hash = run.weight_hash();
  return outcome;
}

// Two devices with 1 and 2 samples of every micro-batch feed two with 1 and 2.
TEST(ThreadedModels, SlicesTrainTwiceToTheSameBitsNearThoseOfOneDevice) {
  const ModelProfile structure = make_structure(make_vit(small_config()), 2);
  Plan plan = make_small_plan(structure, {.micro_batches = 4, .cuts = {{4}}, .owned = {4}});
  plan.reduction = ReductionMode::kFast;
  for (std::size_t s = 0; s < 2; ++s) {
    Stage& stage = plan.pipelines[0].stages[s];
    stage.devices = {DeviceId{2 * s}, DeviceId{2 * s + 1}};
    stage.axis = DeviceAxis::kSamples;
  }
  const ThreadedOutcome first = train(plan, 4);
  const ThreadedOutcome second = train(plan, 4);
  EXPECT_EQ(second.hash, first.hash);
  EXPECT_EQ(second.losses, first.losses);
  const ThreadedOutcome alone =
      train(make_small_plan(structure, {.micro_batches = 4, .cuts = {{}}, .owned = {4}}), 1);
  EXPECT_NEAR(first.losses[0], alone.losses[0], 1e-6 * alone.losses[0]) << "sums in another order";
}

// A run that read other weights than its rule says would lag otherwise, and differ from the next.
TEST(ThreadedModels, VersionsOfWeightsTrainTwiceToTheSameBitsAndLagByTheirRule) {
  constexpr int kMicroBatches = 5;
  const ModelProfile structure = make_structure(make_vit(small_config()), 2);
  Plan plan = make_small_plan(structure, {.schedule = ScheduleKind::kPipeDream,
                                          .micro_batches = kMicroBatches,
                                          .cuts = {{2, 5}},
                                          .owned = {kMicroBatches}});
  plan.versions = WeightVersions::kStash;
  const ThreadedOutcome first = train(plan, 3);
  const ThreadedOutcome second = train(plan, 3);
  EXPECT_EQ(second.hash, first.hash);
  EXPECT_EQ(second.losses, first.losses);
  std::set<std::pair<int, int>> seen;
  for (const WeightRead& read : first.reads) {
    EXPECT_TRUE(seen.emplace(read.stage.value, read.micro_batch.value).second) << "read once";
    EXPECT_EQ(read.lag, std::min(2 - read.stage.value, read.micro_batch.value));
  }
  EXPECT_EQ(seen.size(), 3U * kMicroBatches);
}

}  // namespace
}  // namespace frazil
