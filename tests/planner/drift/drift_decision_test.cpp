#include "planner/drift/drift_decision.h"

#include <gtest/gtest.h>

#include "planner/plan/activity.h"
#include "tests/planner/drift/chain_cases.h"

namespace frazil {
namespace {

// Six layers of 30 us over two devices of which the second takes 1.5 x: three layers each are no
// longer even.
struct SlowSecond {
  ModelProfile profile = make_chain(std::vector<std::int64_t>(6, 10'000));
  Cluster cluster = make_row({1'000'000, 1'500'000});
  DriftQuestion question{
      .held = make_chain_plan(6, {3}, 8),
      .overhead = {.plan = Duration{1'000}, .move = Duration{200'000}, .start = Duration{99'000}}};
};

Duration step_of(const Plan& plan, const SlowSecond& slow) {
  return simulate_plan(plan, {slow.profile, slow.cluster}).makespan;
}

DriftDecision decide(const SlowSecond& slow) {
  return decide_on_drift(slow.question, {slow.profile, slow.cluster}, {slow.profile, slow.cluster});
}

TEST(DriftDecision, TakesTheProposalWithTheLeastTimeToCome) {
  SlowSecond slow;
  slow.question.steps = 1'000;
  Duration least = kNever;
  for (int cut = 1; cut < 6; ++cut) {
    least = std::min(least, step_of(make_chain_plan(6, {cut}, 8), slow));
  }
  const DriftDecision decision = decide(slow);
  ASSERT_NE(decision.chosen(), nullptr);
  EXPECT_EQ(decision.held_step, step_of(slow.question.held, slow));
  EXPECT_EQ(decision.chosen()->step, least) << "two devices have no better cut";
  EXPECT_EQ(decision.chosen()->by, DriftProposer::kPartition);
  EXPECT_EQ(decision.gain, (decision.held_step - least) * 1'000);
  EXPECT_TRUE(decision.replans);
}

TEST(DriftDecision, ReplansFromTheStepOnThatPaysTheTransition) {
  SlowSecond slow;
  slow.question.steps = 1;
  const DriftDecision once = decide(slow);
  ASSERT_NE(once.chosen(), nullptr);
  const Duration saved = once.held_step - once.chosen()->step;
  const Duration transition =
      price_transition(slow.question.held, once.chosen()->plan, {slow.profile, slow.cluster},
                       find_activity(slow.profile, slow.question.held.mask), slow.question.overhead)
          .total;
  EXPECT_EQ(once.chosen()->transition, transition);
  ASSERT_GT(saved, Duration{0});
  const Step even = transition / saved;  // the last step that does not pay
  for (const Step steps : {even, even + 1}) {
    slow.question.steps = steps;
    const DriftDecision decision = decide(slow);
    EXPECT_EQ(decision.gain, saved * steps);
    EXPECT_EQ(decision.replans, steps > even);
  }
}

TEST(DriftDecision, ComparesTheSearchedPlanWithTheBalancersAndSaysAllFigures) {
  SlowSecond slow;
  slow.question.steps = 1'000;
  slow.question.searched = make_chain_plan(6, {5}, 8);
  const DriftDecision decision = decide(slow);
  ASSERT_EQ(decision.proposals.size(), 2U) << "both balancers cut alike";
  EXPECT_EQ(decision.proposals[0].by, DriftProposer::kSearch);
  EXPECT_EQ(decision.best, 1U);
  slow.question.searched = decision.proposals[1].plan;
  const DriftDecision agreed = decide(slow);
  ASSERT_EQ(agreed.proposals.size(), 1U);
  EXPECT_EQ(agreed.chosen()->by, DriftProposer::kSearch);
  const DriftDecision told{
      .held_step = Duration{5'000'000},
      .proposals = {{.by = DriftProposer::kSearch,
                     .plan = {},
                     .step = Duration{4'500'000},
                     .transition = Duration{2'000'000}},
                    {.by = DriftProposer::kDiffusion, .plan = {}, .step = Duration{4'800'000}},
                    {.by = DriftProposer::kPartition, .plan = {}, .refused = "no memory"}},
      .best = 0,
      .replans = false,
      .gain = Duration{1'500'000},
      .least_gain = Duration{600'000}};
  EXPECT_EQ(
      explain(told, 3),
      "search saves 0.500 ms in each of 3 steps, 0.200 ms at the least drift, the transition takes "
      "2.000 ms; beside it diffusion 0.200 ms, partition cannot run");
}

// The drift may be as little as none, and then the held plan is the best.
TEST(DriftDecision, ReplansOnlyWhereThatPaysAtTheLeastDriftAsWell) {
  SlowSecond slow;
  slow.question.steps = 1'000;
  const Cluster even = make_row({1'000'000, 1'000'000});
  const DriftDecision decision =
      decide_on_drift(slow.question, {slow.profile, slow.cluster}, {slow.profile, even});
  EXPECT_GT(decision.gain, decision.chosen()->transition);
  const auto even_step = [&](const Plan& plan) {
    return simulate_plan(plan, {slow.profile, even}).makespan;
  };
  EXPECT_EQ(decision.least_gain,
            (even_step(slow.question.held) - even_step(decision.chosen()->plan)) * 1'000);
  EXPECT_LT(decision.least_gain, Duration{0});
  EXPECT_FALSE(decision.replans);
}

TEST(DriftDecision, KeepsWhatLacksMemoryOutOfTheChoice) {
  SlowSecond slow;
  slow.question.steps = 1'000;
  for (Device& device : slow.cluster.devices) device.memory_limit = Bytes{1'700};
  const DriftDecision decision = decide(slow);
  ASSERT_FALSE(decision.proposals.empty());
  EXPECT_FALSE(decision.proposals[0].refused.empty());
  EXPECT_FALSE(decision.replans);
  EXPECT_EQ(decision.chosen(), nullptr);
  EXPECT_EQ(explain(decision, 9), "no other plan was found for the 9 steps to come");
}

// Four stages, the middle two short: three devices take as long, without messages.
TEST(DriftDecision, ReleasesADeviceThatNothingIsSlowerWithout) {
  const ModelProfile profile = make_chain({20'000, 5'000, 5'000, 20'000});
  const Cluster cluster = make_row({1'000'000, 1'000'000, 1'000'000, 1'000'000});
  DriftQuestion question{.held = make_chain_plan(4, {1, 2, 3}, 8), .steps = 100};
  const auto ask = [&] {
    return decide_on_drift(question, {profile, cluster}, {profile, cluster});
  };
  const DriftDecision decision = ask();
  ASSERT_NE(decision.chosen(), nullptr);
  EXPECT_EQ(decision.chosen()->by, DriftProposer::kPacking);
  EXPECT_LE(decision.chosen()->step, decision.held_step);
  EXPECT_TRUE(decision.replans);
  EXPECT_NE(explain(decision, 100).find(", and device 2 is released"), std::string::npos)
      << explain(decision, 100);
  question.overhead.start = decision.gain + Duration{1};
  EXPECT_FALSE(ask().replans) << "the transition takes longer than is gained";
}

}  // namespace
}  // namespace frazil
