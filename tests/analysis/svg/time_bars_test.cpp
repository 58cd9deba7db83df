#include "analysis/svg/time_bars.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

using std::chrono::milliseconds;

TEST(TimeBars, TellEveryPartOfABarAndNoOther) {
  TimeSplit split;
  split.parts = {.compute = milliseconds(30), .drain = milliseconds(8)};
  split.between = milliseconds(2);
  const std::string svg = draw_time_bars({{"first", "predicted", split}});
  for (const char* const title :
       {"predicted, compute: 30.000 ms, 75.0 %", "predicted, drain: 8.000 ms, 20.0 %",
        "predicted, between actions: 2.000 ms, 5.0 %", ">first<"}) {
    EXPECT_NE(svg.find(title), std::string::npos) << title;
  }
  EXPECT_EQ(svg.find("wait"), std::string::npos);
}

TEST(TimeBars, AreAsLongAsTheirSteps) {
  TimeSplit split;
  split.parts.compute = milliseconds(20);
  TimeSplit longer;
  longer.parts.compute = milliseconds(40);
  const std::string svg = draw_time_bars({{"a", "predicted", split}, {"", "measured", longer}});
  const auto length_after = [&](const std::string& title) {
    const std::size_t path = svg.find('h', svg.find("d=\"M", svg.find(title)));
    return std::stod(svg.substr(path + 1));
  };
  EXPECT_GT(length_after("predicted, compute"), 100);
  EXPECT_NEAR(2 * length_after("predicted, compute"), length_after("measured, compute"), 0.02);
}

TEST(TimeBars, OfAStepWithoutTimeAreEmpty) {
  EXPECT_EQ(draw_time_bars({{"a", "predicted", TimeSplit{}}}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace frazil
