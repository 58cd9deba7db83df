#include "analysis/svg/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "analysis/svg/svg_parts.h"
#include "tests/analysis/sample_runs.h"
#include "tests/support/golden.h"

namespace frazil {
namespace {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(SvgTimelines, AreThisText) {
  const Timeline predicted = two_stages(1'000'000, 0, 0);
  const Timeline measured = two_stages(1'250'000, 7, 5'000'000);
  EXPECT_TRUE(
      matches_golden("analysis_timelines.svg",
                     draw_timelines({{"predicted", &predicted}, {"measured", &measured}}, 480)));
}

TEST(SvgTimelines, NameEverySpan) {
  const Timeline timeline = two_stages(1'000'000, 0, 0);
  const std::string svg = draw_timelines({{"one", &timeline}});
  EXPECT_EQ(count_of(svg, "<title>"), timeline.spans.size());
  EXPECT_NE(svg.find("<title>1B0 on device 1 (compute): 3.000 to 5.000 ms, 2.000 ms</title>"),
            std::string::npos);
}

TEST(SvgTimelines, StartAtTheirFirstSpan) {
  const Timeline early = two_stages(1'000'000, 0, 0);
  const Timeline late = two_stages(1'000'000, 0, 77'000'000);
  EXPECT_EQ(draw_timelines({{"one", &early}}), draw_timelines({{"one", &late}}));
}

TEST(SvgTimelines, ShowBothHalvesOfAPair) {
  Timeline timeline;
  timeline.devices = 1;
  add_span(timeline, 0, Lane::kCompute,
           make_pair_action(stage_action(0, ActionKind::kForward, 1),
                            stage_action(0, ActionKind::kBackward, 0)),
           0, 1000);
  const std::string svg = draw_timelines({{"one", &timeline}});
  // Each kind stands once in the legend and once in the span.
  EXPECT_EQ(count_of(svg, "<g class=\"F\">"), 2U);
  EXPECT_EQ(count_of(svg, "<g class=\"B\">"), 2U);
}

TEST(SvgTimelines, WriteOnBothHalvesOfAPair) {
  Timeline timeline;
  timeline.devices = 1;
  add_span(timeline, 0, Lane::kCompute,
           make_pair_action(stage_action(0, ActionKind::kForward, 1),
                            stage_action(0, ActionKind::kBackward, 0)),
           0, 1000);
  const std::string svg = draw_timelines({{"one", &timeline}});
  EXPECT_NE(svg.find(">F1</text>"), std::string::npos);
  EXPECT_NE(svg.find(">B0</text>"), std::string::npos);
}

TEST(SvgTimelines, TellTheStagesOfADeviceApart) {
  Timeline timeline;
  timeline.devices = 2;
  const auto add = [&](std::int32_t device, std::int32_t stage, std::int64_t start) {
    add_span(timeline, device, Lane::kCompute, stage_action(stage, ActionKind::kForward, 0), start,
             start + 1000);
  };
  add(0, 0, 0);
  add(1, 1, 1000);
  const std::string one_each = draw_timelines({{"one", &timeline}});
  EXPECT_EQ(count_of(one_each, ">F0</text>"), 2U) << "the device says which stage";
  EXPECT_EQ(one_each.find("first stage of a device"), std::string::npos);
  add(0, 3, 2000);
  const std::string two = draw_timelines({{"two", &timeline}});
  for (const char* const text : {">0F0</text>", ">1F0</text>", ">3F0</text>"}) {
    EXPECT_EQ(count_of(two, text), 1U) << text;
  }
  EXPECT_EQ(count_of(two, "<g class=\"F c1\">"), 1U) << "the second stage is fainter";
  EXPECT_NE(two.find("first stage of a device"), std::string::npos);
}

TEST(SvgTimelines, SaySoWhenNothingWasRecorded) {
  const Timeline empty;
  EXPECT_NE(draw_timelines({{"measured", &empty}}).find("nothing recorded"), std::string::npos);
}

TEST(SvgChart, IsThisText) {
  const Chart chart{.title = "Throughput",
                    .x_label = "step",
                    .y_label = "samples/s",
                    .series = {{"elastic", {0, 10, 20}, {100, 150, 150}, true},
                               {"unfrozen", {0, 20}, {100, 100}, false}},
                    .marks = {{0, "phase 0"}, {10, "phase 1"}}};
  EXPECT_TRUE(matches_golden("analysis_chart.svg", draw_chart(chart, 480, 200)));
}

TEST(SvgChart, DrawsACurveBesideAnotherFainterInItsColour) {
  Chart chart;
  chart.series = {{"a", {0, 1}, {1, 2}}, {"b", {0, 1}, {2, 3}}, {"b again", {0, 1}, {3, 4}}};
  const std::string faint = "<g class=\"s1\" opacity=\".45\">";
  EXPECT_EQ(count_of(draw_chart(chart), faint), 0U);
  chart.series[2].beside = 1;
  const std::string svg = draw_chart(chart);
  EXPECT_EQ(count_of(svg, faint), 2U) << "the curve and its swatch";
  EXPECT_EQ(count_of(svg, "<g class=\"s2\""), 0U);
}

TEST(SvgChart, BreaksItsLineWhereAValueIsNoNumber) {
  Chart chart;
  chart.series = {{"a", {0, 1, 2, 3, 4}, {1, 2, std::nan(""), 2, 1}, true}};
  const std::string svg = draw_chart(chart);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  const std::size_t line = svg.find("class=\"line\" d=\"");
  const std::string path = svg.substr(line, svg.find("/>", line) - line);
  EXPECT_EQ(count_of(path, "M"), 2U) << path;
}

TEST(SvgChart, DrawsOnePointAndNoPoint) {
  Chart chart;
  chart.series = {{"a", {5}, {7}, false}};
  EXPECT_EQ(draw_chart(chart).find("nan"), std::string::npos);
  chart.series = {{"a", {}, {}, false}};
  EXPECT_NE(draw_chart(chart).find("no data"), std::string::npos);
}

TEST(SvgChart, DrawsALevelAndKeepsItsWordOffTheCurves) {
  Chart chart;
  // One curve runs just above the level.
  chart.series = {{"a", {0, 100}, {5.2, 5.2}, true}, {"b", {0, 100}, {0, 0}, true}};
  chart.levels = {{5, "limit"}};
  const std::string svg = draw_chart(chart);
  ASSERT_EQ(count_of(svg, "class=\"level\""), 1U);
  const auto number_after = [&](const std::string& mark, std::size_t from) {
    return std::stod(svg.substr(svg.find(mark, from) + mark.size()));
  };
  const double line = number_after("M104.00 ", svg.find("class=\"level\""));
  const std::size_t word = svg.rfind("<text", svg.find(">limit</text>"));
  EXPECT_GT(number_after(" y=\"", word), line + 7) << "below its line";
}

TEST(SvgChart, NamesALevelInTheLegendWhereNoRoomIsLeftBesideIt) {
  Chart chart;
  // The curve runs to and fro across the level.
  chart.series = {{"a", {}, {}, false}, {"b", {0, 100}, {0, 0}, true}};
  for (int i = 0; i <= 100; ++i) {
    chart.series[0].x.push_back(i);
    chart.series[0].y.push_back(i % 2 == 0 ? 4.2 : 5.8);
  }
  chart.levels = {{5, "limit"}};
  const std::string svg = draw_chart(chart);
  EXPECT_EQ(count_of(svg, ">limit<"), 0U);
  EXPECT_EQ(count_of(svg, ">dashed: limit<"), 1U);
}

TEST(SvgChart, GivesNoTwoOfFortyCurvesOneLook) {
  Chart chart;
  for (int i = 0; i < 40; ++i) chart.series.push_back({std::to_string(i), {0, 1}, {1.0 * i, 2}});
  const std::string svg = draw_chart(chart);
  for (const char* const look : {"\"s0\"", "\"s6\"", "\"s11\"", "\"s0 r1\"", "\"s3 r3\""}) {
    EXPECT_EQ(count_of(svg, std::string("class=") + look), 2U) << look << ": curve and swatch";
  }
}

TEST(SvgChart, OfALogarithmHasEqualRatiosEquallyFarApart) {
  Chart chart;
  chart.series = {{"a", {0, 1, 2, 3}, {0.1, 1, 10, 0}}};
  chart.is_log = true;
  const auto heights = [&] {
    const std::string svg = draw_chart(chart);
    const std::size_t line = svg.find("class=\"line\" d=\"M");
    std::vector<double> ys;
    std::size_t at = svg.find('"', line + 14) + 1;
    for (std::size_t i = 0; i < 3; ++i) {
      at = svg.find(' ', at) + 1;
      ys.push_back(std::stod(svg.substr(at)));
    }
    return ys;
  };
  const std::vector<double> straight = heights();
  EXPECT_GT(straight[0] - straight[1], 0);
  EXPECT_LT(straight[0] - straight[1], 0.2 * (straight[1] - straight[2])) << "0 has no logarithm";
  chart.series[0].y[3] = 0.5;
  const std::vector<double> logarithmic = heights();
  EXPECT_NEAR(logarithmic[0] - logarithmic[1], logarithmic[1] - logarithmic[2], 0.02);
  EXPECT_EQ(count_of(draw_chart(chart), ">0.2</text>"), 1U) << "a tick between the powers of ten";
}

TEST(SvgChart, GrowsWithItsLegend) {
  Chart chart;
  for (int i = 0; i < 64; ++i) {
    chart.series.push_back({"device" + std::to_string(i), {0, 1}, {0, 1}, true, ": at most 8"});
  }
  const std::string svg = draw_chart(chart, 960, 240);
  EXPECT_EQ(svg.find("height=\"240\""), std::string::npos);
  chart.series.resize(2);
  EXPECT_NE(draw_chart(chart, 960, 240).find("height=\"240\""), std::string::npos);
}

TEST(SvgChart, CountsInWholeNumbers) {
  Chart chart;
  chart.series = {{"a", {0, 1}, {0, 1}, true}};
  EXPECT_NE(draw_chart(chart).find(">0.5<"), std::string::npos);
  chart.counts = true;
  chart.x_label = "";
  chart.series[0].x = {0, 10};
  EXPECT_EQ(draw_chart(chart).find(">0.5<"), std::string::npos);
}

TEST(SvgStaircase, HasOneStretchPerStateOfABlock) {
  FreezeTrace trace = sample_run("run").trace;  // blocks 0 and 1 freeze at step 20 of 40
  const std::string svg = draw_freeze_staircase(trace);
  EXPECT_NE(svg.find("<title>embedding active in steps 0 to 19</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>encoder frozen in steps 20 to 39</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>head active in steps 0 to 39</title>"), std::string::npos);
  EXPECT_EQ(count_of(svg, "<title>"), 5U);
}

TEST(SvgStaircase, ThawsAgain) {
  FreezeTrace trace = sample_run("run").trace;
  add_event(trace, {30, MaskEvent{FreezeMask::all_active(3)}});
  const std::string svg = draw_freeze_staircase(trace);
  EXPECT_NE(svg.find("<title>encoder frozen in steps 20 to 29</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>encoder active in steps 30 to 39</title>"), std::string::npos);
}

TEST(SvgText, IsEscaped) {
  EXPECT_EQ(escape_markup("<a href=\"x\">&'\n"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39; ");
  FreezeTrace trace = sample_run("run").trace;
  trace.blocks[0] = "<script>";
  EXPECT_EQ(draw_freeze_staircase(trace).find("<script>"), std::string::npos);
}

TEST(SvgText, IsShortenedBetweenLetters) {
  EXPECT_EQ(shorten("größe", 5), "größe");
  EXPECT_EQ(shorten("größer", 4), "grö…");
}

TEST(Ticks, AreRoundAndInside) {
  for (const double high : {0.0007, 0.3, 1.0, 7.0, 38.008, 1234.5, 9.9e12}) {
    SCOPED_TRACE(high);
    const Ticks ticks = make_ticks(0, high, 8);
    ASSERT_GE(ticks.values.size(), 4U);
    EXPECT_LE(ticks.values.size(), 9U);
    EXPECT_EQ(ticks.values.front(), 0);
    EXPECT_LE(ticks.values.back(), high * (1 + 1e-9));
    const double power = std::pow(10.0, std::floor(std::log10(ticks.spacing) + 1e-9));
    const double digit = std::round(ticks.spacing / power);
    EXPECT_TRUE(digit == 1 || digit == 2 || digit == 5) << ticks.spacing;
  }
  EXPECT_EQ(make_ticks(0, 0.3, 5).text(0.1), "0.1");
  EXPECT_EQ(make_ticks(0, 300, 5).text(100), "100");
}

}  // namespace
}  // namespace frazil
