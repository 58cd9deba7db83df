#include "planner/reproduce/pipe_bd/open_inputs.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

double ratio(Duration a, Duration b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

TEST(OpenInputs, FindTheLoadThatGivesThePublishedSpeedup) {
  BlockwiseTask task{make_imagenet_times(), make_imagenet_loader()};
  const Duration data_parallel = time_data_parallel(task, {}).plain;
  const OpenLoad open = find_open_load(task, deal_as_published(), data_parallel, 0.494);
  EXPECT_EQ(open.simulated, task.loader.alone);
  ASSERT_TRUE(open.needed.has_value());
  task.loader.alone = *open.needed;
  EXPECT_NEAR(ratio(data_parallel, time_layerwise(task, deal_as_published(), {}).plain), 0.494,
              1e-5);
  // Loading decides, so the speed-up is 1 / time: its slope is -1 / 21.823 per ms.
  EXPECT_NEAR(open.slope_per_ms, -1 / to_ms(open.simulated), 1e-4);
}

TEST(OpenInputs, SayWhereNoLoadGivesThePublishedSpeedup) {
  const BlockwiseTask task{make_cifar_times(), make_cifar_loader()};
  const Duration data_parallel = time_data_parallel(task, {}).plain;
  const OpenLoad open = find_open_load(task, deal_as_published(), data_parallel, 1.931);
  EXPECT_FALSE(open.needed.has_value());
  EXPECT_LT(open.without, 1.931);
  EXPECT_LT(open.slope_per_ms, 0);
}

// The constant that TR+DPU is fitted on cannot be fitted on LS instead: both LS and data
// parallelism load each batch once per block, so with one time for all methods LS is no slower.
TEST(OpenInputs, HaveNoOneLoadThatMakesLsASlowDown) {
  BlockwiseTask task{make_imagenet_times(), make_imagenet_loader()};
  for (int ms = 0; ms <= 80; ms += 4) {
    task.loader.alone = std::chrono::milliseconds(ms);
    const double speedup = ratio(time_data_parallel(task, {}).plain,
                                 time_layerwise(task, deal_as_published(), {}).plain);
    EXPECT_GE(speedup, 0.999) << ms;
  }
}

}  // namespace
}  // namespace frazil
