// There is a fault in each kind of action of a step: every worker ends before its deadline, the one
// cause names rank, step and action, and nothing is left. All is in one process, and so under the
// thread sanitizer.

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/exec/support/changing_rate.h"
#include "tests/exec/support/failing_model.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

using std::chrono::seconds;

struct FaultPlaceCase {
  FaultPlace place = FaultPlace::kForward;
  PlanShape shape = {};
  bool recompute = false;
  std::string cause;  // how the sentence begins
};

const PlanShape kTwoStages{.micro_batches = 4, .cuts = {{4}}, .owned = {4}};
const PlanShape kSplit{
    .schedule = ScheduleKind::kZbH1, .micro_batches = 4, .cuts = {{4}}, .owned = {4}};
// The failing micro-batch is the second replica's only one.
const PlanShape kReplicas{
    .schedule = ScheduleKind::kZbH1, .micro_batches = 2, .cuts = {{4}, {4}}, .owned = {1, 1}};

Plan make_case_plan(const FaultPlaceCase& one, const ModelProfile& structure) {
  Plan plan = make_small_plan(structure, one.shape);
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      if (one.recompute) stage.memory = MemoryPolicy::kRecompute;
    }
  }
  return plan;
}

// Returns the sentence of the third step; all that its layers have met must be gone afterwards.
std::string fail(const FaultPlaceCase& one, const std::function<void()>& fault, Duration deadline) {
  const OptimizerConfig optimizer{.learning_rate = 1e-2, .clip_norm = 0.5};
  MetTensors met;
  std::string sentence;
  {
    frazil::Run run(make_failing(one.place, fault, met), optimizer, 7, devices_of(one.shape),
                    {.deadline = deadline});
    run.transition_to(make_case_plan(one, run.structure()));
    const auto step = [&](Step step) {
      run.step(step, changing_rate(optimizer, step, 4),
               small_micro_batches(step, one.shape.micro_batches));
    };
    for (Step s = 0; s < kFailingStep; ++s) step(s);
    sentence = failure_of([&] { step(kFailingStep); }).sentence;
    const std::string again = failure_of([&] { step(kFailingStep + 1); }).sentence;
    EXPECT_NE(again.find("made anew; it failed with: " + sentence), std::string::npos) << again;
  }
  EXPECT_GT(met.count(), 0U);
  EXPECT_TRUE(met.all_gone()) << "a tensor is left";
  return sentence;
}

void give_up() { throw std::runtime_error("the layer gives up"); }

TEST(FaultInAStep, OfEveryKindOfActionIsTheOneCauseAndLeavesNothing) {
  const std::vector<FaultPlaceCase> cases = {
      {FaultPlace::kForward, kTwoStages, false, "rank 1, step 2, action 1F1: the layer gives up"},
      {FaultPlace::kLoss, kTwoStages, false, "rank 1, step 2, action 1F1: the layer gives up"},
      {FaultPlace::kBackward, kTwoStages, false, "rank 1, step 2, action 1B1: the layer gives up"},
      {FaultPlace::kBackward, kSplit, false, "rank 1, step 2, action 1I1: the layer gives up"},
      {FaultPlace::kBackwardWeight, kSplit, false,
       "rank 1, step 2, action 1W1: the layer gives up"},
      {FaultPlace::kRecompute, kTwoStages, true, "rank 1, step 2, action 1R1: the layer gives up"},
      {FaultPlace::kRecompute, kSplit, true, "rank 1, step 2, action 1R1: the layer gives up"},
      {FaultPlace::kReduction, kReplicas, false, "rank 3, step 2, action 1:1REDUCE_GRAD: start"},
      {FaultPlace::kUpdate, kSplit, false, "rank 1, step 2, action 1U: tensors/finite.cpp"}};
  const Surroundings surroundings;
  constexpr auto kDeadline = seconds(60);
  for (const FaultPlaceCase& one : cases) {
    SCOPED_TRACE(one.cause);
    const auto begin = std::chrono::steady_clock::now();
    const std::string sentence = fail(one, give_up, kDeadline);
    EXPECT_EQ(sentence.rfind(one.cause, 0), 0U) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kDeadline);
    EXPECT_EQ(surroundings.change(), "");
  }
}

// The peer of the worker waits for what is not sent any more, until the deadline.
TEST(FaultInAStep, AWorkerThatStopsInARecomputationOrAWeightGradientIsFoundAtTheDeadline) {
  const Surroundings surroundings;
  // Torch's first use takes longer.
  (void)fail({.shape = kSplit, .cause = {}}, give_up, seconds(60));
  for (const auto place : {FaultPlace::kRecompute, FaultPlace::kBackwardWeight}) {
    const FaultPlaceCase one{place, kSplit, place == FaultPlace::kRecompute, {}};
    const std::string sentence = fail(
        one, [] { std::this_thread::sleep_for(seconds(8)); }, seconds(3));
    EXPECT_EQ(sentence.rfind("rank 0 waited 3.000 s for the gradient of micro-batch ", 0), 0U)
        << sentence;
    EXPECT_NE(sentence.find(" into stage 0 (step 2) from rank 1"), std::string::npos) << sentence;
    EXPECT_EQ(surroundings.change(), "");
  }
}

}  // namespace
}  // namespace frazil
