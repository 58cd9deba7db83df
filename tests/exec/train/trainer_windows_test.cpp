// A training whose plan lets devices go ahead (planner/plan/step_window.h).
#include "exec/train/trainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "analysis/compare.h"
#include "exec/train/train_phase.h"
#include "planner/plan/step_window.h"
#include "planner/what_if/plan_changes.h"
#include "profiles/error.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

constexpr Step kEpoch = 6;

TrainOptions window_options(int steps_ahead) {
  TrainOptions options;
  options.config = tiny_config();
  options.config.optimizer.clip_norm = 0;
  options.config.freeze = {};
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(kAmpleMemory);
  options.command = "frazil train";
  options.elastic = false;
  Plan plan;
  plan.model_hash = model_hash(options.profile);
  plan.batch_size = options.config.batch_size;
  plan.micro_batch_size = options.config.micro_batch_size;
  plan.mask = FreezeMask::all_active(static_cast<int>(options.profile.blocks.size()));
  plan.pipelines = {make_pipeline(kSmallLayers, {LayerId{4}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{1}})};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  plan.steps_ahead = steps_ahead;
  options.plan = plan;
  return options;
}

TrainResult train_window(const TrainOptions& options) {
  return train(options, load_data(options.config));
}

void expect_same_training(const TrainResult& found, const TrainResult& expected) {
  EXPECT_EQ(found.weight_hash, expected.weight_hash);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(masks_of(found.trace), masks_of(expected.trace));
  ASSERT_EQ(found.phases.size(), expected.phases.size());
  for (std::size_t i = 0; i < found.phases.size(); ++i) {
    EXPECT_EQ(found.phases[i].first_step, expected.phases[i].first_step);
    EXPECT_EQ(found.phases[i].steps, expected.phases[i].steps);
    ASSERT_TRUE(found.phases[i].memory.has_value());
    EXPECT_EQ(found.phases[i].memory->step, expected.phases[i].memory->step);
  }
}

// 45 samples: the sixth step of an epoch has 5, a micro-batch of 4 and one of 1.
TEST(TrainerWindows, ChangeNoBit) {
  for (const int samples : {static_cast<int>(kTinySamples), 45}) {
    const auto with = [&](int steps_ahead) {
      TrainOptions options = window_options(steps_ahead);
      options.config.data.train_samples = samples;
      return train_window(options);
    };
    const TrainResult in_step = with(0);
    for (const int steps_ahead : {1, 3, 7}) {
      SCOPED_TRACE(steps_ahead);
      const TrainResult ahead = with(steps_ahead);
      expect_same_training(ahead, in_step);
      EXPECT_EQ(ahead.phases[0].window, steps_ahead + 1);
      EXPECT_EQ(ahead.phases[0].in_step, "");
    }
  }
}

// Masks that follow from the step are known ahead: a window ends where one changes.
TEST(TrainerWindows, EndWhereTheMaskChanges) {
  const auto with = [](int steps_ahead) {
    TrainOptions options = window_options(steps_ahead);
    options.config.freeze = tiny_config().freeze;
    return train_window(options);
  };
  const TrainResult in_step = with(0);
  ASSERT_EQ(in_step.phases.size(), 3U);
  const TrainResult ahead = with(3);
  expect_same_training(ahead, in_step);
  for (const TrainPhase& phase : ahead.phases) EXPECT_EQ(phase.plan.steps_ahead, 3);
}

// The first step is cold and the second weighed, each by itself; the four that follow are a window
// that begins among the cold ones. Those of the next epoch are 6 to 9, and 10 and 11.
TEST(TrainerWindows, AreMeasuredWholeAndComparedWithTheSimulatedOne) {
  const TrainResult result = train_window(window_options(3));
  const TrainPhase& phase = result.phases.at(0);
  EXPECT_EQ(steps_of(phase.predicted), (std::vector<Step>{0, 1, 2, 3}));
  EXPECT_EQ(phase.predicted_step, makespan(phase.predicted) / 4);
  EXPECT_EQ(windows_of(phase.measured, 4).front(), kEpoch);
  EXPECT_EQ(steps_of(phase.measured).size() % 4, 0U);
  const Comparison comparison = compare(phase.predicted, phase.measured);
  EXPECT_EQ(comparison.window, 4);
  EXPECT_EQ(comparison.steps.size(), windows_of(phase.measured, 4).size());
  EXPECT_TRUE(comparison.only_predicted.empty());
  EXPECT_TRUE(comparison.only_measured.empty());
}

TEST(TrainerWindows, AreNoneWhereStepsDecideOrClip) {
  TrainOptions clipped = window_options(3);
  clipped.config.optimizer.clip_norm = 1;
  std::vector<std::string> told;
  const TrainResult result = train(clipped, load_data(clipped.config),
                                   [&](const TrainProgress& now) { told.push_back(now.event); });
  const TrainPhase& phase = result.phases.at(0);
  EXPECT_EQ(phase.window, 1);
  EXPECT_EQ(phase.in_step, explain_in_step(*clipped.plan, {.clips = true}));
  EXPECT_EQ(std::count(told.begin(), told.end(), phase.in_step), 1);
  TrainOptions plain = clipped;
  plain.plan->steps_ahead = 0;
  EXPECT_EQ(train_window(plain).weight_hash, result.weight_hash);
  EXPECT_EQ(phase.predicted, train_window(plain).phases.at(0).predicted);
}

// A checkpoint is due after 4 steps, in the middle of what would be a window, and a run that is
// stopped and goes on has the bits of one that was not.
TEST(TrainerWindows, EndWhereACheckpointIsDue) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("frazil-windows-" + std::to_string(getpid()));
  const std::uint64_t expected = train_window(window_options(0)).weight_hash;
  TrainOptions options = window_options(7);
  options.durable = DurableOptions{.folder = folder, .every = 4};
  int asked = 0;
  options.stop = [&asked] { return ++asked == 5; };
  const TrainResult stopped = train_window(options);
  ASSERT_TRUE(stopped.stopped_at.has_value());
  options.durable->resume = true;
  options.stop = {};
  EXPECT_EQ(train_window(options).weight_hash, expected);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace frazil
