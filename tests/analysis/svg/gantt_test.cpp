#include "analysis/svg/gantt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/svg/gantt_memory.h"
#include "planner/what_if/what_if.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Returns the texts between `from` and the next quote.
std::vector<std::string> list_after(const std::string& text, const std::string& from) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
    const std::size_t begin = at + from.size();
    found.push_back(text.substr(begin, text.find('"', begin) - begin));
  }
  return found;
}

class Gantt : public testing::Test {
 protected:
  void SetUp() override { simulate(ScheduleKind::kZbH1, 2, 3); }
  void simulate(ScheduleKind schedule, int devices, int micro_batches) {
    WhatIf what_if;
    what_if.stages = devices;
    what_if.micro_batches = micro_batches;
    what_if.schedule = schedule;
    what_if.forward = what_if.backward_input = what_if.backward_weight = {milliseconds(1)};
    inputs_ = make_what_if(what_if);
    step_ = simulate_what_if(inputs_);
  }
  GanttInput input(bool counts_chunks = true) const {
    return {.title = "zb-h1 <2 x 3>",
            .step = &step_,
            .setting = {inputs_.profile, inputs_.cluster},
            .counts_chunks = counts_chunks};
  }
  WhatIfInputs inputs_;
  SimulatedStep step_;
};

TEST_F(Gantt, HoldsEverySpanAndTheCurveOfEachDeviceInOnePicture) {
  const std::string svg = gantt_svg(input());
  EXPECT_EQ(count(svg, "<svg"), 3U) << "a frame around the time line and the curves";
  EXPECT_EQ(count(svg, "</svg>"), 3U);
  EXPECT_EQ(count(svg, " on device"), 2U * 3U * 3U) << "F, I and W of each micro-batch and stage";
  EXPECT_NE(svg.find("Chunks in flight"), std::string::npos);
  EXPECT_NE(svg.find("zb-h1 &lt;2 x 3&gt;"), std::string::npos);
}

TEST_F(Gantt, NamesTheUnitOfBytes) {
  const std::string svg = gantt_svg(input(false));
  EXPECT_NE(svg.find("Memory held"), std::string::npos);
  EXPECT_NE(svg.find(">bytes<"), std::string::npos);
  for (Layer& layer : inputs_.profile.layers) layer.parameters = Bytes{3 << 20};
  step_ = simulate_what_if(inputs_);
  EXPECT_NE(gantt_svg(input(false)).find(">MiB<"), std::string::npos);
}

TEST_F(Gantt, ThePageSaysWhereTheTimeGoesLineByLine) {
  const std::string page = gantt_html(input());
  EXPECT_EQ(count(page, "<svg"), 2U);
  EXPECT_NE(page.find("<h1>zb-h1 &lt;2 x 3&gt;</h1>"), std::string::npos);
  EXPECT_NE(page.find("<span class=\"row\">device1"), std::string::npos);
  EXPECT_NE(page.find("<span>critical path "), std::string::npos) << "a line that wraps";
  EXPECT_EQ(count(page, "<script"), 1U) << "the page's own";
}

TEST_F(Gantt, PutsATimeAtOnePlaceInBothPanels) {
  const std::string svg = gantt_svg(input());
  const std::size_t memory = svg.find("Chunks in flight");
  // The axes begin at x = 104 and end at 926.
  const std::vector<std::string> axes = list_after(svg, "class=\"axis\" d=\"M104.00 ");
  const auto across = std::count_if(axes.begin(), axes.end(), [](const std::string& path) {
    return path.find("H926.00") != std::string::npos;
  });
  EXPECT_EQ(across, 2);
  // The time of 7 ms of 10 lies at 104 + 0.7 x 822: a line in the upper panel, a tick in the lower
  // one.
  EXPECT_LT(svg.find("M679.40 "), memory);
  EXPECT_NE(svg.find("M679.40 ", memory), std::string::npos);
}

TEST_F(Gantt, CallsADeviceByItsNameEverywhere) {
  inputs_.cluster.devices[1].name = "left <gpu>";
  const std::string svg = gantt_svg(input());
  EXPECT_NE(svg.find("1F0 on left &lt;gpu&gt; (compute)"), std::string::npos);
  EXPECT_NE(svg.find(">left &lt;gpu&gt;</text>"), std::string::npos);
  EXPECT_NE(svg.find(">left &lt;gpu&gt;: at most "), std::string::npos);
  EXPECT_EQ(count(svg, "device1") + count(svg, "device 1"), 0U);
}

TEST_F(Gantt, DrawsALimitAndSaysWhoDoesNotFit) {
  for (Layer& layer : inputs_.profile.layers) layer.parameters = Bytes{3 << 20};
  step_ = simulate_what_if(inputs_);
  const Bytes peak = step_.simulation.memory[0].total;
  const auto limit_both = [&](Bytes first, Bytes second) {
    inputs_.cluster.devices[0].memory_limit = first;
    inputs_.cluster.devices[1].memory_limit = second;
  };
  limit_both(peak, peak);
  ASSERT_EQ(make_memory_charts(input(false)).size(), 1U);
  EXPECT_EQ(make_memory_charts(input(false))[0].levels.size(), 1U) << "one line for one limit";
  EXPECT_TRUE(list_misfits(input(false)).empty()) << "exactly full fits";
  EXPECT_EQ(gantt_svg(input(false)).find("does not fit"), std::string::npos);

  limit_both(peak - Bytes{1}, peak + peak + Bytes{2});
  const Chart chart = make_memory_charts(input(false))[0];
  ASSERT_EQ(chart.levels.size(), 1U) << "a limit far above is said, not drawn";
  EXPECT_EQ(chart.levels[0].second.rfind("limit ", 0), 0U);
  EXPECT_TRUE(chart.series[0].warns);
  EXPECT_FALSE(chart.series[1].warns);
  EXPECT_NE(chart.series[1].remark.find(" of "), std::string::npos);
  const std::string words = "device0 does not fit: " + std::to_string(peak.count) + " of " +
                            std::to_string(peak.count - 1) + " bytes";
  EXPECT_EQ(list_misfits(input(false)), std::vector<std::string>{words})
      << "one byte too many is told from none";
  EXPECT_NE(gantt_svg(input(false)).find(words), std::string::npos);
  EXPECT_EQ(count(gantt_html(input(false)), words), 2U) << "above the picture and in it";
}

TEST_F(Gantt, CountsAsManyChunksAsTheAnswerToAWhatIf) {
  for (const ScheduleKind schedule :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbV,
        ScheduleKind::kInterleaved, ScheduleKind::kDualPipe, ScheduleKind::kChimera}) {
    SCOPED_TRACE(schedule_name(schedule));
    simulate(schedule, 4, 8);
    const std::vector<Chart> charts = make_memory_charts(input());
    ASSERT_EQ(charts.size(), 1U);
    const std::vector<int> peaks = answer_what_if(inputs_, step_).peak_chunks;
    for (std::size_t d = 0; d < peaks.size(); ++d) {
      const std::vector<double>& held = charts[0].series[d].y;
      EXPECT_EQ(*std::max_element(held.begin(), held.end()), peaks[d]) << "device " << d;
      EXPECT_EQ(held.back(), 0) << "nothing stays";
    }
  }
}

TEST_F(Gantt, KeepsInputsApartFromChunksWhereAStageRecomputes) {
  simulate(ScheduleKind::kVaruna, 4, 8);
  const std::vector<Chart> charts = make_memory_charts(input());
  ASSERT_EQ(charts.size(), 2U);
  const auto most = [](const Chart& chart, std::size_t device) {
    const std::vector<double>& held = chart.series[device].y;
    return *std::max_element(held.begin(), held.end());
  };
  // A device recomputes for the very next backward, so it holds one whole micro-batch; the first
  // device has run all eight forwards before its first R, so it holds the inputs of eight.
  EXPECT_EQ(most(charts[0], 0), 1);
  EXPECT_EQ(most(charts[1], 0), 8);
  EXPECT_EQ(most(charts[0], 3), 1);
  EXPECT_EQ(most(charts[1], 3), 0) << "the last stage does not recompute";
}

}  // namespace
}  // namespace frazil
