// Processes may come at any time while a run goes on, and go again: the run takes them in between
// two steps, and the bits are those of a run in one process.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/exec/support/late_run.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr std::uint64_t kLateSeed = 7;
constexpr Step kLateSteps = 8;

OptimizerConfig late_optimizer() { return {.learning_rate = 1e-2}; }

ModelSpec late_model() { return make_vit(small_config()); }

PlanShape equal_replicas(int count) {
  PlanShape shape;
  shape.cuts.assign(static_cast<std::size_t>(count), {});
  shape.owned.assign(static_cast<std::size_t>(count), 6 / count);
  return shape;
}

std::uint64_t run_alone() {
  Run run(late_model(), late_optimizer(), kLateSeed, 1);
  run.transition_to(make_small_plan(run.structure(), equal_replicas(1)));
  for (Step step = 0; step < kLateSteps; ++step) {
    run.step(step, 1e-2, small_micro_batches(step, 6));
  }
  return run.weight_hash();
}

void step_once(LateRun& run, Step step) { run.step(step, 1e-2, small_micro_batches(step, 6)); }

// Waits until a newcomer is ready, or has failed, and takes in who is. Returns what is told of
// them.
std::vector<std::string> take_in_next(LateRun& run) {
  for (int i = 0; i < 20'000; ++i) {
    if (run.sees_newcomers()) run.take_in();
    std::vector<std::string> told = run.take_arrivals();
    if (!told.empty()) return told;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

// Puts the next plan in force, and does the step again if a process was lost in it.
void step_surviving(LateRun& run, Step step, const PlanShape& left) {
  try {
    step_once(run, step);
  } catch (const StepUndone&) {
    (void)run.regroup();
    run.transition_to(make_small_plan(run.structure(), left));
    step_once(run, step);
  }
}

TEST(LateProcess, TakesPartFromTheNextPlanOn) {
  LateRun run(late_model(), late_optimizer(), kLateSeed, {0, 1, 2, 3}, {0, 1});
  EXPECT_EQ(run.devices_there(), (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}}));
  run.transition_to(make_small_plan(run.structure(), equal_replicas(2)));
  step_once(run, 0);
  run.come(2);
  EXPECT_EQ(take_in_next(run), (std::vector<std::string>{"rank 2 has come"}));
  run.come(3);
  EXPECT_EQ(take_in_next(run), (std::vector<std::string>{"rank 3 has come"}));
  EXPECT_EQ(run.devices_there().size(), 4U);
  // Four stages: a layer or two for each newcomer.
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{2, 4, 6}}, .owned = {6}}));
  step_once(run, 1);
  // A plan that does not need them lets them sleep.
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{4}}, .owned = {6}}));
  step_once(run, 2);
  run.transition_to(make_small_plan(run.structure(), equal_replicas(3)));
  step_once(run, 3);
  // One of them goes, and another one comes in its place.
  run.kill(2);
  step_surviving(run, 4, equal_replicas(2));
  run.come(2);
  EXPECT_EQ(take_in_next(run), (std::vector<std::string>{"rank 2 has come"}));
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{2, 4, 6}}, .owned = {6}}));
  for (Step step = 5; step < kLateSteps; ++step) step_once(run, step);
  EXPECT_EQ(run.weight_hash(), run_alone());
}

TEST(LateProcess, ThatGoesWhileItIsTakenInLeavesTheRunAsItWas) {
  LateRun run(late_model(), late_optimizer(), kLateSeed, {0, 1, 2}, {0, 1});
  run.transition_to(make_small_plan(run.structure(), equal_replicas(2)));
  step_once(run, 0);
  for (Step step = 1; step < 4; ++step) {
    run.come(2, /*is_sound=*/false);
    const std::vector<std::string> told = take_in_next(run);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].find("rank 2 is not taken in: "), 0U) << told[0];
    EXPECT_EQ(run.devices_there().size(), 2U);
    step_once(run, step);  // under the plan in force
  }
  run.come(2);
  EXPECT_EQ(take_in_next(run), (std::vector<std::string>{"rank 2 has come"}));
  run.transition_to(make_small_plan(run.structure(), equal_replicas(3)));
  for (Step step = 4; step < kLateSteps; ++step) step_once(run, step);
  EXPECT_EQ(run.weight_hash(), run_alone());
}

TEST(LateProcess, ThatGoesBeforeItIsReadyIsToldOf) {
  LateRun run(late_model(), late_optimizer(), kLateSeed, {0, 1, 2}, {0, 1});
  run.transition_to(make_small_plan(run.structure(), equal_replicas(2)));
  run.come(2);
  run.kill(2);
  EXPECT_EQ(take_in_next(run),
            (std::vector<std::string>{"rank 2: its process has ended before it took part"}));
  for (Step step = 0; step < kLateSteps; ++step) step_once(run, step);
  EXPECT_EQ(run.weight_hash(), run_alone());
}

// The sockets of one that was there in vain are not taken for those of the next one.
TEST(LateProcess, ThatGoesBetweenReadinessAndConnectingLeavesNothingForTheNextOne) {
  LateRun run(late_model(), late_optimizer(), kLateSeed, {0, 1, 2}, {0, 1});
  run.transition_to(make_small_plan(run.structure(), equal_replicas(2)));
  step_once(run, 0);
  run.come(2);
  while (!run.sees_newcomers()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  run.kill(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for the leader to notice
  (void)run.take_in();
  (void)take_in_next(run);  // that it has gone
  run.come(2);
  EXPECT_EQ(take_in_next(run), (std::vector<std::string>{"rank 2 has come"}));
  run.transition_to(make_small_plan(run.structure(), equal_replicas(3)));
  for (Step step = 1; step < kLateSteps; ++step) step_once(run, step);
  EXPECT_EQ(run.weight_hash(), run_alone());
}

TEST(LateProcess, ThatMeetsTheLossOfAMemberIsNotToldOfAsThatLoss) {
  LateRun run(late_model(), late_optimizer(), kLateSeed, {0, 1, 2}, {0, 1});
  run.transition_to(make_small_plan(run.structure(), equal_replicas(2)));
  step_once(run, 0);
  run.come(2);
  while (!run.sees_newcomers()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  run.kill(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for the leader to notice
  EXPECT_EQ(run.take_in(), std::vector<std::string>{"rank 1 is lost: its process has ended"});
  const std::vector<std::string> told = run.take_arrivals();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].rfind("rank 2 is not taken in: ", 0), 0U) << told[0];
  run.transition_to(make_small_plan(run.structure(), equal_replicas(1)));
  for (Step step = 1; step < kLateSteps; ++step) step_once(run, step);
  EXPECT_EQ(run.weight_hash(), run_alone());
}

TEST(LateProcess, ThatComesWhileAnotherIsLostTakesItsPart) {
  LateRun run(late_model(), late_optimizer(), kLateSeed, {0, 1, 2}, {0, 1});
  run.transition_to(make_small_plan(run.structure(), equal_replicas(2)));
  step_once(run, 0);
  run.come(2);
  while (!run.sees_newcomers()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  run.kill(1);
  (void)run.take_in();  // the newcomer may be turned away: who connects with it has gone
  (void)run.take_arrivals();
  for (bool is_settled = false; !is_settled;) {
    try {
      run.transition_to(make_small_plan(run.structure(), equal_replicas(1)));
      is_settled = true;
    } catch (const StepUndone&) {
      (void)run.regroup();
    }
  }
  for (Step step = 1; step < kLateSteps; ++step) step_surviving(run, step, equal_replicas(1));
  EXPECT_EQ(run.weight_hash(), run_alone());
}

}  // namespace
}  // namespace frazil
