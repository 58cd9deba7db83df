#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "exec/state/optimizer.h"

namespace frazil {
namespace {

TEST(LearningRate, FallsAlongHalfACosine) {
  const OptimizerConfig config{.learning_rate = 0.5, .schedule = RateSchedule::kCosine};
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 120), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 40, 120), 0.375);  // cos 60 degrees = 1/2
  EXPECT_DOUBLE_EQ(learning_rate(config, 60, 120), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 80, 120), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(config, 120, 120), 0);
  EXPECT_THROW(learning_rate(config, 121, 120), std::logic_error);
}

TEST(LearningRate, RisesInEqualPartsBeforeTheCosine) {
  const OptimizerConfig config{
      .learning_rate = 0.5, .schedule = RateSchedule::kCosine, .warm_up_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 124), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 124), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 2, 124), 0.375);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3, 124), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4, 124), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 44, 124), 0.375);  // cos 60 degrees = 1/2
  EXPECT_DOUBLE_EQ(learning_rate(config, 64, 124), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 84, 124), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(config, 124, 124), 0);
}

TEST(LearningRate, OnlyRisesInARunNoLongerThanItsWarmUp) {
  const OptimizerConfig config{
      .learning_rate = 0.5, .schedule = RateSchedule::kCosine, .warm_up_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 2), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3, 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4, 4), 0.5);
}

TEST(LearningRate, StaysAfterTheWarmUpWithoutTheCosine) {
  const OptimizerConfig config{
      .learning_rate = 0.5, .schedule = RateSchedule::kConstant, .warm_up_steps = 2};
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 10), 0.25);
  EXPECT_EQ(learning_rate(config, 1, 10), 0.5);
  EXPECT_EQ(learning_rate(config, 9, 10), 0.5);
}

// PyTorch's LambdaLR with the function of get_linear_schedule_with_warmup (transformers 4.57.6),
// which counts steps from 0 and changes nothing in the first.
double linear_with_warmup(int step, int warm_up, int steps) {
  if (step < warm_up) return static_cast<double>(step) / std::max(1, warm_up);
  return std::max(0.0, static_cast<double>(steps - step) / std::max(1, steps - warm_up));
}

TEST(LearningRate, FallsAlongALineAsThatOfTransformers) {
  for (const int warm_up : {0, 1, 4, 30}) {
    const OptimizerConfig config{
        .learning_rate = 0.5, .schedule = RateSchedule::kLinear, .warm_up_steps = warm_up};
    for (int step = 0; step <= 50; ++step) {
      const int place = step < warm_up ? step + 1 : step;
      EXPECT_DOUBLE_EQ(learning_rate(config, step, 50),
                       0.5 * linear_with_warmup(place, warm_up, 50))
          << "step " << step << ", warm-up of " << warm_up;
    }
  }
  const OptimizerConfig rising{.schedule = RateSchedule::kLinear, .warm_up_steps = 4};
  EXPECT_EQ(learning_rate(rising, 4, 4), rising.learning_rate);
}

TEST(LearningRate, StaysWithoutTheCosine) {
  const OptimizerConfig config{.learning_rate = 0.5, .schedule = RateSchedule::kConstant};
  EXPECT_EQ(learning_rate(config, 0, 10), 0.5);
  EXPECT_EQ(learning_rate(config, 9, 10), 0.5);
}

}  // namespace
}  // namespace frazil
