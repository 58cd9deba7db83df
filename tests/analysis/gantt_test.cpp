#include "analysis/gantt.h"

#include <gtest/gtest.h>

#include "planner/what_if.h"

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

class Gantt : public testing::Test {
 protected:
  void SetUp() override {
    WhatIf what_if;
    what_if.stages = 2;
    what_if.micro_batches = 3;
    what_if.schedule = ScheduleKind::kZbH1;
    what_if.forward = what_if.backward_input = what_if.backward_weight = {milliseconds(1)};
    inputs_ = make_what_if(what_if);
    step_ = simulate_what_if(inputs_);
  }
  GanttInput input(bool counts_chunks = true) const {
    return {.title = "zb-h1 <2 x 3>",
            .step = &step_,
            .profile = &inputs_.profile,
            .cluster = &inputs_.cluster,
            .counts_chunks = counts_chunks};
  }
  WhatIfInputs inputs_;
  SimulatedStep step_;
};

TEST_F(Gantt, HoldsEverySpanAndTheCurveOfEachDeviceInOnePicture) {
  const std::string svg = gantt_svg(input());
  EXPECT_EQ(count(svg, "<svg"), 3U) << "a frame around the time line and the curves";
  EXPECT_EQ(count(svg, "</svg>"), 3U);
  EXPECT_EQ(count(svg, " on device "), 2U * 3U * 3U) << "F, I and W of each micro-batch and stage";
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
  EXPECT_NE(page.find("\ndevice1"), std::string::npos);
  EXPECT_NE(page.find("\ncritical path "), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

}  // namespace
}  // namespace frazil
