// Runs whose devices are told to take what a test plants: they re-plan where that pays, keep their
// plan where it does not, and have the bits of a run that watches nothing.

#include "exec/train/drift/drift_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "exec/train/trainer.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/trajectory/trajectory_candidates.h"
#include "planner/trajectory/walk_times.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

constexpr Step kDrifts = 66;
constexpr Step kAllSteps = 120;

// A pipeline of two devices that freezes nothing: the memory is too little for a replica, and
// enough for one more layer on each device.
TrainOptions watched_options() {
  TrainOptions options;
  options.config = tiny_config();
  options.config.freeze.policy = NoFreeze{};
  options.config.data.train_samples = 240;  // 30 steps an epoch
  options.config.epochs = 4;
  options.config.micro_batch_size = 2;
  options.config.drift.kind = DriftConfig::Kind::kOn;
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(Bytes{700'000});
  options.overhead = TransitionOverhead{.plan = std::chrono::microseconds(100),
                                        .move = std::chrono::microseconds(100),
                                        .start = std::chrono::microseconds(100)};
  options.planted.foreign_cores = 0;
  options.command = "frazil train";
  return options;
}

// Plants 1 % of noise, and a device that takes `factor` x from a step on.
std::function<StepCosts(Step, const StepCosts&, const StepCosts&)> plant(DeviceId slow,
                                                                         double factor,
                                                                         Step from = kDrifts) {
  return [=](Step step, const StepCosts& predicted, const StepCosts& /*measured*/) {
    std::mt19937_64 random(static_cast<std::uint64_t>(step) + 1);
    std::normal_distribution<double> normal(0, 0.01);
    StepCosts costs = predicted;
    const auto scale = [&](Duration& time, DeviceId device, double noise) {
      const double slower = device == slow && step >= from ? factor : 1;
      time = Duration{std::llround(static_cast<double>(time.count()) * slower * std::exp(noise))};
    };
    for (std::size_t d = 0; d < costs.devices.size(); ++d) {
      scale(costs.devices[d], DeviceId{d}, normal(random));
    }
    for (LayerTime& layer : costs.layers) scale(layer.time, layer.device, normal(random));
    return costs;
  };
}

TrainResult run_watched(const TrainOptions& options) {
  return train(options, load_data(options.config));
}

std::vector<std::pair<Step, DriftEvent>> drifts_of(const FreezeTrace& trace) {
  std::vector<std::pair<Step, DriftEvent>> drifts;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* drift = std::get_if<DriftEvent>(&event.what)) {
      drifts.emplace_back(event.step, *drift);
    }
  }
  return drifts;
}

TEST(DriftControl, ReplansWithinTwentyStepsAndKeepsTheBits) {
  TrainOptions options = watched_options();
  options.planted.costs = plant(DeviceId{1}, 1.3);
  const TrainResult result = run_watched(options);
  const auto drifts = drifts_of(result.trace);
  ASSERT_EQ(drifts.size(), 1U);
  const auto& [step, drift] = drifts.front();
  EXPECT_GT(step, kDrifts);
  EXPECT_LE(step, kDrifts + 20);
  EXPECT_EQ(drift.change, DriftChange::kReplanned);
  EXPECT_EQ(drift.reason.substr(0, 16), "device 1 takes 1");
  EXPECT_EQ(drift.devices_ppm[0], 1'000'000);
  EXPECT_NEAR(static_cast<double>(drift.devices_ppm[1]), 1'300'000, 40'000);
  EXPECT_EQ(drift.steps, kAllSteps - step);
  // Device 1 gives layers to device 0.
  ASSERT_EQ(result.phases.size(), 2U);
  EXPECT_EQ(result.phases[1].first_step, step);
  // What the plans take at the measured costs, simulated anew.
  Cluster slow = options.cluster;
  slow.devices[1].time_ppm = drift.devices_ppm[1];
  const auto step_of = [&](const Plan& plan) {
    return simulate_plan(plan, {options.profile, slow}).makespan;
  };
  EXPECT_EQ(drift.held_step, step_of(result.phases[0].plan));
  EXPECT_EQ(drift.best_step, step_of(result.phases[1].plan));
  EXPECT_EQ(result.phases[1].predicted_step, drift.best_step);
  EXPECT_GT((drift.held_step - drift.best_step) * drift.steps, drift.transition);
  TrainOptions unwatched = options;
  unwatched.config.drift = {};
  unwatched.planted = {};
  const TrainResult undisturbed = run_watched(unwatched);
  ASSERT_EQ(undisturbed.phases.size(), 1U);
  EXPECT_EQ(result.weight_hash, undisturbed.weight_hash);
  EXPECT_EQ(parse_freeze_trace(to_jsonl(result.trace), "trace.jsonl"), result.trace);
}

TEST(DriftControl, TellsNothingOfARunWithoutDrift) {
  TrainOptions options = watched_options();
  options.planted.costs = plant(DeviceId{1}, 1.0);
  const TrainResult result = run_watched(options);
  EXPECT_TRUE(drifts_of(result.trace).empty());
  EXPECT_EQ(result.phases.size(), 1U);
}

// A transition takes so long that no plan makes up for it in the steps that are left.
TEST(DriftControl, DeclinesWhatDoesNotPayWithItsFigures) {
  TrainOptions options = watched_options();
  options.overhead->start = std::chrono::seconds(1);
  options.planted.costs = plant(DeviceId{1}, 1.3);
  std::string told;
  const TrainResult result =
      train(options, load_data(options.config), [&](const TrainProgress& now) {
        if (now.event.starts_with("drift: ")) told = now.event;
      });
  const auto drifts = drifts_of(result.trace);
  ASSERT_EQ(drifts.size(), 1U) << "what was declined is the baseline from then on";
  const DriftEvent& drift = drifts.front().second;
  EXPECT_EQ(drift.change, DriftChange::kDeclined);
  EXPECT_GT(drift.held_step, drift.best_step);
  EXPECT_GE(drift.transition, std::chrono::seconds(1));
  EXPECT_LE((drift.held_step - drift.best_step) * drift.steps, drift.transition);
  EXPECT_EQ(told, "drift: " + drift.reason + ", declined: " + drift.note);
  EXPECT_EQ(result.phases.size(), 1U);
}

// Blocks freeze after the drift: the plan for the new mask is that for the slower device.
TEST(DriftControl, LaterPlansAreByTheMeasuredCosts) {
  TrainOptions options = watched_options();
  options.config.freeze.policy =
      AlphaFreeze{.alpha = 0.5, .start = 3, .interval = 100, .unit = PaceUnit::kEpochs};
  options.planted.costs = plant(DeviceId{1}, 1.3);
  const TrainResult result = run_watched(options);
  const auto drifts = drifts_of(result.trace);
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_EQ(drifts[0].second.steps, 90 - drifts[0].first) << "the next mask is known";
  const TrainPhase& last = result.phases.back();
  EXPECT_EQ(last.first_step, 90);
  Cluster slow = options.cluster;
  slow.devices[1].time_ppm = drifts[0].second.devices_ppm[1];
  EXPECT_EQ(last.predicted_step, simulate_plan(last.plan, {options.profile, slow}).makespan);
}

// Device 1 drifts at step 66, which a run has decided on by step 88, and blocks freeze at step 90.
class ResumedDrift : public testing::TestWithParam<Replanning> {
 protected:
  ResumedDrift() {
    options_ = watched_options();
    options_.config.replan = GetParam();
    options_.config.freeze.policy =
        AlphaFreeze{.alpha = 0.5, .start = 3, .interval = 100, .unit = PaceUnit::kEpochs};
    options_.planted.costs = plant(DeviceId{1}, 1.3);
    whole_ = run_watched(options_);
  }

  // Ends after so many steps, with a checkpoint.
  void end_after(Step steps) {
    disk_ = DiskModel();
    options_.durable = DurableOptions{
        .folder = "/run", .every = 1000, .keep = 2, .resume = false, .journal = {}, .files = {}};
    options_.durable->files = disk_.files();
    Step done = 0;
    options_.stop = [&] { return ++done == steps; };
    (void)run_watched(options_);
  }
  TrainResult go_on() {
    options_.stop = {};
    options_.durable->resume = true;
    warnings_.clear();
    return train(options_, load_data(options_.config), [&](const TrainProgress& now) {
      if (now.is_warning) warnings_ += now.event + "\n";
    });
  }

  void expect_rest(Step end) {
    const TrainResult resumed = go_on();
    EXPECT_EQ(warnings_, "");
    EXPECT_EQ(resumed.first_step, end);
    const std::size_t first = end < 90 ? 1 : 2;
    ASSERT_EQ(resumed.phases.size(), 3 - first);
    for (std::size_t p = 0; p < resumed.phases.size(); ++p) {
      EXPECT_EQ(resumed.phases[p].plan, whole_.phases[first + p].plan);
      EXPECT_EQ(resumed.phases[p].predicted_step, whole_.phases[first + p].predicted_step);
    }
    EXPECT_EQ(resumed.weight_hash, whole_.weight_hash);
  }

  TrainOptions options_;
  TrainResult whole_;
  DiskModel disk_;
  std::string warnings_;
};

TEST_P(ResumedDrift, HasThePlansAndTheBitsOfARunThatNeverEnded) {
  const auto drifts = drifts_of(whole_.trace);
  ASSERT_EQ(drifts.size(), 1U);
  ASSERT_EQ(drifts[0].second.change, DriftChange::kReplanned);
  ASSERT_LT(drifts[0].first, 88);
  ASSERT_EQ(whole_.phases.size(), 3U);
  for (const Step end : {88, 90, 100}) {
    SCOPED_TRACE(end);
    end_after(end);
    expect_rest(end);
  }
  // The plan that a run was given is that of its first steps alone.
  options_.plan = whole_.phases[0].plan;
  end_after(88);
  expect_rest(88);
}

TEST_P(ResumedDrift, ForgetsWhatWasFoundBesideOtherCosts) {
  end_after(88);
  options_.cluster.devices[0].time_ppm = 1'100'000;
  const TrainResult resumed = go_on();
  EXPECT_EQ(warnings_,
            "what the run had found its devices and layers to take is left out: the profile or the "
            "cluster is another one\n");
  EXPECT_EQ(
      resumed.phases.back().predicted_step,
      simulate_plan(resumed.phases.back().plan, {options_.profile, options_.cluster}).makespan);
  EXPECT_EQ(resumed.weight_hash, whole_.weight_hash);
}

INSTANTIATE_TEST_SUITE_P(DriftControl, ResumedDrift,
                         testing::Values(Replanning::kGreedy, Replanning::kTrajectory),
                         [](const auto& kind) {
                           return kind.param == Replanning::kGreedy ? "Greedy" : "Trajectory";
                         });

// The trace of a run that re-planned, as `train` writes it, is a forecast: its plans, held as the
// run has held them, take there what the run predicted of them, before the drift and after it.
TEST(DriftControl, LeavesATraceThatAForecastIsPricedBy) {
  TrainOptions options = watched_options();
  options.planted.costs = plant(DeviceId{1}, 1.3);
  const TrainResult result = run_watched(options);
  ASSERT_EQ(result.phases.size(), 2U);
  const FreezeTrace trace = parse_freeze_trace(to_jsonl(result.trace), "trace.jsonl");
  const Setting setting{options.profile, options.cluster};
  const std::vector<ForecastSegment> segments =
      split_at_drifts(find_segments(trace, "trace.jsonl"), trace, "trace.jsonl", setting);
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[1].step, result.phases[1].first_step);
  std::vector<HeldSegment> walk;
  for (std::size_t p = 0; p < 2; ++p) {
    walk.push_back({as_candidate(result.phases[p].plan), segments[p]});
  }
  const WalkTimes times = time_walk(setting, {}, walk);
  EXPECT_EQ(times.step_times, (std::vector<Duration>{result.phases[0].predicted_step,
                                                     result.phases[1].predicted_step}));
  walk[1].plan = walk[0].plan;
  EXPECT_EQ(time_walk(setting, {}, walk).step_times[1], drifts_of(trace)[0].second.held_step);
}

TEST(DriftControl, WatchesNothingInARunThatKeepsItsPlan) {
  TrainOptions options = watched_options();
  options.elastic = false;
  options.planted.costs = plant(DeviceId{1}, 2.0);
  std::string told;
  const TrainResult result =
      train(options, load_data(options.config), [&](const TrainProgress& now) {
        if (now.event.starts_with("drift ")) told = now.event;
      });
  EXPECT_TRUE(drifts_of(result.trace).empty());
  EXPECT_EQ(told, "drift is not watched in a run that keeps its plan");
}

// A device that takes 20 times as long has nothing to do that another one could not do sooner.
TEST(DriftControl, ReleasesADeviceThatHasBecomeTooSlow) {
  TrainOptions options = watched_options();
  options.plan = run_watched(options).phases[0].plan;  // of two devices with little memory
  ASSERT_EQ(list_used_devices(*options.plan).size(), 2U);
  options.cluster = tiny_cluster(kAmpleMemory);
  options.planted.costs = plant(DeviceId{1}, 20);
  const FreezeTrace trace = run_watched(options).trace;
  const auto drifts = drifts_of(trace);
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_EQ(drifts[0].second.change, DriftChange::kReplanned);
  EXPECT_NE(drifts[0].second.note.find(", and device 1 is released"), std::string::npos)
      << drifts[0].second.note;
  const DevicesEvent released{DevicesChange::kReleased, {DeviceId{1}}};
  const bool is_told =
      std::any_of(trace.events.begin(), trace.events.end(), [&](const auto& event) {
        const auto* const devices = std::get_if<DevicesEvent>(&event.what);
        return devices != nullptr && event.step == drifts[0].first && *devices == released;
      });
  EXPECT_TRUE(is_told);
}

// The given plan uses one device; with blocks frozen two are faster.
TEST(PhaseChanges, TellWhichDevicesAPlanReleasesAndAsksBack) {
  TrainOptions options = watched_options();
  options.config = tiny_config();
  options.cluster = tiny_cluster(kAmpleMemory);
  Plan one = run_watched(options).phases[0].plan;
  one.pipelines = {make_pipeline(8, {}, {DeviceId{0}}, {MicroBatchId{0}, MicroBatchId{1}})};
  one.schedule = NamedSchedule{};
  options.plan = one;
  const TrainResult result = run_watched(options);
  std::vector<std::pair<Step, DevicesEvent>> changes;
  for (const FreezeEvent& event : result.trace.events) {
    if (const auto* devices = std::get_if<DevicesEvent>(&event.what)) {
      changes.emplace_back(event.step, *devices);
    }
  }
  const std::vector<std::pair<Step, DevicesEvent>> expected = {
      {0, {DevicesChange::kReleased, {DeviceId{1}}}},
      {6, {DevicesChange::kAskedBack, {DeviceId{1}}}}};
  EXPECT_EQ(changes, expected);
}

}  // namespace
}  // namespace frazil
