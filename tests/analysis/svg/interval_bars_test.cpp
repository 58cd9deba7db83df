#include "analysis/svg/interval_bars.h"

#include <gtest/gtest.h>

#include <regex>

namespace frazil {
namespace {

std::vector<double> numbers_of(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  std::vector<double> numbers;
  for (std::sregex_iterator found(text.begin(), text.end(), wanted), end; found != end; ++found) {
    for (std::size_t i = 1; i < found->size(); ++i) numbers.push_back(std::stod((*found)[i]));
  }
  return numbers;
}

// A bar begins at the base and ends at its value; a value twice as far is drawn twice as far.
TEST(IntervalBars, AreAsLongAsTheirValues) {
  const std::string svg = draw_interval_bars(
      {.title = "Speed", .x_label = "x", .base = 1, .bars = {{"a", 2}, {"b", 3}}, .levels = {}});
  const std::vector<double> bars = numbers_of(svg, "c2\"><path d=\"M([0-9.]+) [0-9.]+H([0-9.]+)v");
  ASSERT_EQ(bars.size(), 4U);
  EXPECT_EQ(bars[0], bars[2]);
  EXPECT_NEAR(bars[3] - bars[2], 2 * (bars[1] - bars[0]), 0.02);
}

TEST(IntervalBars, EndAWideIntervalAtTheEdgeAndTellItsNumbers) {
  const std::string svg =
      draw_interval_bars({.title = "Difference",
                          .x_label = "points",
                          .base = 0,
                          .bars = {{"a & b", -1, {{-120, 118}}, {-1.5, -0.5}, -0.7}},
                          .levels = {{-1, "margin"}}});
  EXPECT_NE(svg.find("a &amp; b: -1, interval -120 to 118, predicted -0.7"), std::string::npos);
  const std::vector<double> whisker =
      numbers_of(svg, "class=\"axis\" d=\"M([0-9.]+) [0-9.]+H([0-9.]+)\"/>");
  ASSERT_GE(whisker.size(), 2U);
  EXPECT_EQ(whisker[0], 104);  // margins of a wide picture
  EXPECT_EQ(whisker[1], 926);
  EXPECT_NE(svg.find(">margin<"), std::string::npos);
}

TEST(IntervalBars, SayThatThereIsNothing) {
  EXPECT_NE(draw_interval_bars({.title = "Speed", .x_label = "", .bars = {}, .levels = {}})
                .find("no data"),
            std::string::npos);
}

}  // namespace
}  // namespace frazil
