#include "planner/reproduce/pipe_bd/pipe_bd_verdicts.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

using enum SpeedupVerdict;

// A chart of published speed-ups in thousandths with a bar of 10 %, and steps of so many ns.
SpeedupResult make_chart(std::array<int, 5> published, std::array<int, 5> steps) {
  SpeedupResult result{.published = {"T", "D", published}, .bar = 0.1};
  for (std::size_t m = 0; m < steps.size(); ++m) result.times[m].plain = Duration{steps[m]};
  return result;
}

TEST(PipeBdVerdicts, TellWrongSignsFromErrors) {
  // Speed-ups of 1, 2 (published 0.5), 2.5 (2.4), 4 (3.2) and 5 (5).
  const SpeedupResult sign = make_chart({1000, 500, 2400, 3200, 5000}, {1000, 500, 400, 250, 200});
  EXPECT_EQ(judge_speedups(sign),
            (std::vector{kBaseline, kWrongSign, kWithinBar, kOffBar, kWithinBar}));
  EXPECT_EQ(explain_misses(sign),
            (std::vector<std::string>{
                "LS for T on D is a speed-up (2.000) where a slow-down (0.500) was published",
                "TR+DPU for T on D is 4.000 where 3.200 was published, off by over 10 %"}));
}

TEST(PipeBdVerdicts, TellWrongOrdersButNotOfEqualSpeedups) {
  // TR+DPU was published as faster than TR; the last two are published as equal.
  const SpeedupResult order =
      make_chart({1000, 2000, 2400, 3000, 3000}, {1000, 500, 350, 400, 390});
  EXPECT_EQ(judge_speedups(order),
            (std::vector{kBaseline, kWithinBar, kWrongOrder, kWrongOrder, kWrongOrder}));
  EXPECT_EQ(explain_misses(order).size(), 3U);
  const SpeedupResult right =
      make_chart({1000, 2000, 2400, 3000, 3000}, {1000, 500, 400, 330, 340});
  EXPECT_TRUE(explain_misses(right).empty());
}

TEST(PipeBdVerdicts, JudgeTheOrderOfTheRunsMedianToo) {
  SpeedupResult result = make_chart({1000, 2000, 2400, 3000, 3000}, {1000, 500, 400, 330, 330});
  for (MethodTime& time : result.times) time.drawn.assign(3, time.plain);
  EXPECT_TRUE(explain_misses(result).empty());
  result.times[2].drawn = {Duration{300}, Duration{310}, Duration{500}};
  EXPECT_EQ(judge_speedups(result)[2], kWrongOrder);
}

TEST(PipeBdVerdicts, CountNeitherFittedRowsNorOpenOnesNorOwnWorkloads) {
  SpeedupResult result = make_chart({1000, 500, 2400, 3200, 3200}, {1000, 500, 400, 310, 310});
  result.open_load = OpenLoad{.needed = Duration{1}};
  result.fitted = BlockwiseMethod::kTrDpu;
  EXPECT_EQ(judge_speedups(result),
            (std::vector{kBaseline, kOpenInput, kWithinBar, kFitted, kWithinBar}));
  EXPECT_TRUE(explain_misses(result).empty());
  // An input that cannot give what was published answers nothing.
  result.open_load->needed.reset();
  EXPECT_EQ(judge_speedups(result)[1], kWrongSign);
  // A row within its bar needs no open input.
  result.times[1].plain = Duration{2000};
  EXPECT_EQ(judge_speedups(result)[1], kWithinBar);
  result.bar.reset();
  EXPECT_EQ(judge_speedups(result)[4], kOwnWorkload);
}

TEST(PipeBdVerdicts, TakeNearestRanksOfTheSpeedupsOfRuns) {
  SpeedupResult result = make_chart({1000, 2000, 2000, 2000, 2000}, {100, 50, 50, 50, 50});
  EXPECT_FALSE(find_spread(result, 1).has_value());
  for (int run = 1; run <= 10; ++run) {
    result.times[0].drawn.emplace_back(100 * run);
    result.times[1].drawn.emplace_back(100);
  }
  const auto spread = find_spread(result, 1);
  ASSERT_TRUE(spread.has_value());
  EXPECT_EQ(spread->p10, 1);
  EXPECT_EQ(spread->median, 5);
  EXPECT_EQ(spread->p90, 9);
}

TEST(PipeBdVerdicts, CompareTheOrderOfOwnWorkloads) {
  const SpeedupResult same = make_chart({1000, 500, 2400, 3200, 4000}, {100, 110, 90, 80, 70});
  EXPECT_EQ(compare_order(same),
            "T on D: from slow to fast LS, DP, TR, TR+DPU, TR+DPU+AHD, as published");
  const SpeedupResult other = make_chart({1000, 500, 2400, 3200, 4000}, {100, 90, 90, 80, 70});
  EXPECT_EQ(compare_order(other),
            "T on D: from slow to fast DP, LS, TR, TR+DPU, TR+DPU+AHD; published LS, DP, TR, "
            "TR+DPU, TR+DPU+AHD");
}

}  // namespace
}  // namespace frazil
