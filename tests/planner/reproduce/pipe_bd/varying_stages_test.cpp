#include "planner/reproduce/pipe_bd/varying_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace frazil {
namespace {

// Stages of 15 to 25 ms by plain recursion. A barrier lets every stage begin with the slowest one's
// end; else a stage begins when it and the relay are there: no earlier than the stage before.
double recur(bool barrier, int runs, int steps) {
  std::mt19937_64 draw(7);
  std::uniform_real_distribution<double> stage(15, 25);
  double sum = 0;
  for (int run = 0; run < runs; ++run) {
    std::array<double, 4> end{};
    double middle = 0;
    for (int step = 0; step < 2 * steps; ++step) {
      if (step == steps) middle = *std::max_element(end.begin(), end.end());
      double start = 0;
      for (double& of : end) {
        start = std::max(start, of);
        of = start + stage(draw);
      }
      if (barrier) end.fill(*std::max_element(end.begin(), end.end()));
    }
    sum += (*std::max_element(end.begin(), end.end()) - middle) / steps;
  }
  return sum / runs;
}

TEST(VaryingStages, TakeTheTimeOfARecursionOverStages) {
  const VaryingResult found = simulate_varying({.seed = 1, .runs = 20, .steps = 200});
  // The recursion's own spread over so few steps is some hundredths of a ms.
  EXPECT_NEAR(found.barrier_ms, recur(true, 20, 200), 0.15);
  EXPECT_NEAR(found.decoupled_ms, recur(false, 20, 200), 0.15);
  EXPECT_GT(found.barrier_ms, found.decoupled_ms);
}

TEST(VaryingStages, AreAsKnownWithinAFifthOfAPercent) {
  VaryingResult result{.options = {}, .barrier_ms = 23.04, .decoupled_ms = 20.13};
  EXPECT_TRUE(is_as_known(result));
  result.decoupled_ms = 20.228;  // the mean with the steps in which queues fill
  EXPECT_FALSE(is_as_known(result));
}

TEST(VaryingStagesOfAllRuns, AreAsKnown) {
  const VaryingResult result = simulate_varying({});
  EXPECT_TRUE(is_as_known(result)) << result.barrier_ms << " " << result.decoupled_ms;
}

}  // namespace
}  // namespace frazil
