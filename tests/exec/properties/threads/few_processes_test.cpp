// A short run over processes beside the threads of each: devices, leader, members, their readers
// and writers. It is small enough for the thread sanitizer; everything else about runs over
// processes is tested in tests/exec/properties/processes.

#include <gtest/gtest.h>

#include "tests/exec/support/process_run.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr Step kFewSteps = 4;
constexpr int kFewMicroBatches = 6;

ModelSpec few_layers() { return make_vit(small_config()); }

OptimizerConfig few_steps_optimizer() { return {.learning_rate = 1e-2}; }

template <class AnyRun>
void take_step(AnyRun& run, Step step) {
  run.step(step, 1e-2, small_micro_batches(step, kFewMicroBatches));
}

std::uint64_t hash_of_one_device() {
  Run run(few_layers(), few_steps_optimizer(), 7, 1);
  run.transition_to(make_small_plan(run.structure(), {}));
  for (Step step = 0; step < kFewSteps; ++step) take_step(run, step);
  return run.weight_hash();
}

TEST(FewProcesses, HaveTheBitsOfOneDeviceAcrossATransition) {
  const std::uint64_t expected = hash_of_one_device();
  for (const ProcessLinks links : {ProcessLinks::kUnix, ProcessLinks::kTcp}) {
    SCOPED_TRACE(links == ProcessLinks::kUnix ? "Unix sockets" : "TCP");
    ProcessRun run(few_layers(), few_steps_optimizer(), 7, {{0, 1, 1}, links});
    run.transition_to(make_small_plan(run.structure(), {.cuts = {{2, 5}}}));
    for (Step step = 0; step < kFewSteps; ++step) {
      if (step == 2) {
        run.transition_to(make_small_plan(run.structure(), {.cuts = {{4}, {}}, .owned = {4, 2}}));
      }
      take_step(run, step);
    }
    EXPECT_EQ(run.weight_hash(), expected);
  }
}

TEST(FewProcesses, GoOnWithoutOneThatIsKilled) {
  ProcessRun run(few_layers(), few_steps_optimizer(), 7, {{0, 1, 2}});
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{4}, {}}, .owned = {4, 2}}));
  int undone = 0;
  for (Step step = 0; step < kFewSteps;) {
    if (step == 2 && undone == 0) run.kill(1);
    try {
      take_step(run, step);
      ++step;
    } catch (const StepUndone&) {
      ++undone;
      (void)run.regroup();
      ASSERT_TRUE(run.lost_layers().empty());
      run.transition_to(make_small_plan(run.structure(), {}));
    }
  }
  EXPECT_EQ(undone, 1);
  EXPECT_EQ(run.weight_hash(), hash_of_one_device());
}

}  // namespace
}  // namespace frazil
