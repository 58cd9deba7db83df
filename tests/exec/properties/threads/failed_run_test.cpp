// A run whose step fails gives its program one sentence and an exit code, and leaves nothing
// behind.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>

#include "planner/verbs/command_line.h"
#include "tests/exec/support/failing_model.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr int kMicroBatches = 4;

void train(frazil::Run& run) {
  run.transition_to(make_small_plan(
      run.structure(), {.micro_batches = kMicroBatches, .cuts = {{4}}, .owned = {kMicroBatches}}));
  for (Step step = 0; step < kFailingStep + 1; ++step) {
    run.step(step, 1e-2, small_micro_batches(step, kMicroBatches));
  }
}

// Runs as a subcommand does; returns 99 when something is left.
int run_program(const std::function<void()>& fault, FaultPlace place = FaultPlace::kForward,
                Duration deadline = std::chrono::minutes(1)) {
  const Surroundings before;
  MetTensors met;
  std::string name = "frazil-train";
  char* arguments[] = {name.data(), nullptr};
  const int code =
      run_verb({"train", "Fails.", "frazil train"}, 1, arguments, {}, [&](const auto&) {
        frazil::Run run(make_failing(place, fault, met), {}, 7, 2, {.deadline = deadline});
        train(run);
        return ExitCode::kOk;
      });
  const bool left = !before.change().empty() || met.count() == 0 || !met.all_gone();
  return left ? 99 : code;
}

class FailedRun : public testing::Test {
 protected:
  // The process begins anew for each death test, so that it has no threads but its own.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FailedRun, EndsWithOneSentenceThatNamesThePlaceAndLeavesNothing) {
  EXPECT_EXIT(std::exit(run_program([] { throw std::runtime_error("the layer gives up"); })),
              testing::ExitedWithCode(1),
              "^frazil train: rank 1, step 2, action 1F1: the layer gives up\n$");
}

TEST_F(FailedRun, NamesTheBackwardAndTheLossAsWell) {
  const auto give_up = [] { throw std::runtime_error("the layer gives up"); };
  EXPECT_EXIT(std::exit(run_program(give_up, FaultPlace::kBackward)), testing::ExitedWithCode(1),
              "^frazil train: rank 1, step 2, action 1B1: the layer gives up\n$");
  EXPECT_EXIT(std::exit(run_program(give_up, FaultPlace::kLoss)), testing::ExitedWithCode(1),
              "^frazil train: rank 1, step 2, action 1F1: the layer gives up\n$");
}

// Nobody waits for the only device's message, but the watch over the run sees that no action ends.
TEST_F(FailedRun, ADeviceAloneThatHangsIsFoundAfterTheDeadline) {
  MetTensors met;
  bool hangs = false;
  const auto hang = [&hangs] {
    hangs = true;
    std::this_thread::sleep_for(std::chrono::seconds(8));
  };
  ModelSpec model = make_failing(FaultPlace::kForward, hang, met);
  frazil::Run run(std::move(model), {}, 7, 1, {.deadline = std::chrono::seconds(3)});
  run.transition_to(make_small_plan(
      run.structure(), {.micro_batches = kMicroBatches, .cuts = {{}}, .owned = {kMicroBatches}}));
  const RankFailure failure = failure_of([&] {
    for (Step step = 0; step <= kFailingStep; ++step) {
      run.step(step, 1e-2, small_micro_batches(step, kMicroBatches));
    }
  });
  EXPECT_EQ(failure.sentence, "rank 0 has not ended an action within 3.000 s: step 2, action 0F1");
  EXPECT_TRUE(hangs) << "no earlier action took so long";
}

TEST_F(FailedRun, OutOfMemoryHasItsOwnCode) {
  EXPECT_EXIT(std::exit(run_program([] { throw std::bad_alloc(); })), testing::ExitedWithCode(7),
              "^frazil train: rank 1, step 2, action 1F1: out of memory\n$");
}

TEST_F(FailedRun, ALayerThatTakesTooLongIsAPeerLostAndIsWaitedFor) {
  EXPECT_EXIT(
      std::exit(run_program([] { std::this_thread::sleep_for(std::chrono::seconds(12)); },
                            FaultPlace::kForward, std::chrono::seconds(5))),
      testing::ExitedWithCode(6),
      "^frazil train: rank 0 waited 5.000 s for the gradient of micro-batch [0-9] into stage 0 "
      "\\(step 2\\) from rank 1\n$");
}

TEST_F(FailedRun, SaysThatItMustBeMadeAnew) {
  MetTensors met;
  frazil::Run run(
      make_failing(
          FaultPlace::kForward, [] { throw std::runtime_error("the layer gives up"); }, met),
      {}, 7, 2);
  EXPECT_EQ(failure_of([&] { train(run); }).sentence,
            "rank 1, step 2, action 1F1: the layer gives up");
  const std::string expected =
      "a run whose step has failed is made anew; it failed with: rank 1, step 2, action 1F1: the "
      "layer gives up";
  const std::string again =
      failure_of([&] { run.step(3, 1e-2, small_micro_batches(3, kMicroBatches)); }).sentence;
  EXPECT_NE(again.find(expected), std::string::npos) << again;
  const std::string moved = failure_of([&] { run.transition_to(run.plan()); }).sentence;
  EXPECT_NE(moved.find(expected), std::string::npos) << moved;
}

TEST(RunOfAPlan, RefusesAPlanOfAnotherModelAndKeepsTheOldOne) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2);
  const Plan plan =
      make_small_plan(run.structure(), {.micro_batches = 4, .cuts = {{4}}, .owned = {4}});
  run.transition_to(plan);
  Plan other = plan;
  other.pipelines[0].stages[1].layers.back().last.value += 1;
  EXPECT_THROW(run.transition_to(other), InputError);
  other = plan;
  other.model_hash = "0123456789abcdef";
  EXPECT_THROW(run.transition_to(other), InputError);
  EXPECT_EQ(run.plan(), plan);
  run.step(0, 1e-2, small_micro_batches(0, 4));
}

}  // namespace
}  // namespace frazil
