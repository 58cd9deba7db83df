#include "planner/prediction/contended_step.h"

#include <gtest/gtest.h>

#include "planner/plan/schedule_facts.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

WhatIfInputs ask(ScheduleKind kind) {
  WhatIf what_if;
  what_if.stages = 4;
  what_if.micro_batches = 8;
  what_if.schedule = kind;
  what_if.forward = what_if.backward_input = what_if.backward_weight = {milliseconds(1)};
  what_if.hop = nanoseconds(313'000);
  return make_what_if(what_if);
}

TEST(ContendedStep, WithoutARuleEveryScheduleTakesItsStaticTime) {
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(schedule_name(facts.kind));
    const WhatIfInputs inputs = ask(facts.kind);
    const SimulatedStep step = simulate_what_if(inputs);
    EXPECT_EQ(simulate_contended(step.lowered, {inputs.profile, inputs.cluster}, {}).makespan,
              step.simulation.makespan);
  }
}

// A plan of two layers of 10 ns on two devices; a message of 40 bytes takes 40 ns at 1 byte per ns.
struct TwoStages {
  ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(0));
  Cluster cluster = make_uniform_cluster(2, Bytes{1'000'000}, {{}, BytesPerSecond{1'000'000'000}});
  Plan plan;

  TwoStages() {
    profile.edges[0].tensor_bytes_per_sample = {Bytes{40}};
    plan.model_hash = model_hash(profile);
    plan.batch_size = 3;
    plan.mask = FreezeMask::all_active(2);
    plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                    {MicroBatchId{0}, MicroBatchId{2}})};
    plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  }
  ContendedStep run(const ContentionOptions& options) const {
    return simulate_contended(simulate_step(plan, {profile, cluster}).lowered, {profile, cluster},
                              options);
  }
};

TEST(ContendedStep, ASendThatBlocksHoldsItsDeviceUp) {
  const TwoStages two;
  const Duration free = two.run({}).makespan;
  EXPECT_EQ(free, simulate_plan(two.plan, {two.profile, two.cluster}).makespan);
  EXPECT_GT(two.run({.block_sends = true}).makespan, free);
  EXPECT_GE(two.run({.buffers = 0}).makespan, free);
}

TEST(ContendedStep, SharingNeverMakesItFaster) {
  const TwoStages two;
  EXPECT_GE(two.run({.share_links = true}).makespan, two.run({}).makespan);
}

TEST(ContendedStep, BlockingBothWaysWithoutBuffersIsADeadlockThatNamesBoth) {
  TwoStages two;
  two.plan.schedule = NamedSchedule{.kind = ScheduleKind::kOneForwardOneBackward};
  try {
    two.run({.block_sends = true, .buffers = 0});
    FAIL() << "came through";
  } catch (const InfeasibleError& error) {
    const std::string sentence = error.what();
    EXPECT_NE(sentence.find("0SEND_F1 on device 0"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("1SEND_B0 on device 1"), std::string::npos) << sentence;
  }
}

TEST(ContendedStep, JitterSpreadsAroundTheStaticTimeAndRepeatsBySeed) {
  const WhatIfInputs inputs = ask(ScheduleKind::kZbH1);
  const SimulatedStep step = simulate_what_if(inputs);
  const auto spread = [&](std::uint64_t seed, std::int64_t amplitude) {
    return *simulate_contended(step.lowered, {inputs.profile, inputs.cluster},
                               {.jitter = Jitter{seed, 200, amplitude}})
                .spread;
  };
  const Spread some = spread(1, 50'000);
  EXPECT_LT(some.p10, some.median);
  EXPECT_LT(some.median, some.p90);
  EXPECT_EQ(spread(1, 50'000), some);
  EXPECT_NE(spread(2, 50'000), some);
  EXPECT_EQ(spread(1, 0).p10, step.simulation.makespan);
  EXPECT_EQ(spread(1, 0).p90, step.simulation.makespan);
}

}  // namespace
}  // namespace frazil
