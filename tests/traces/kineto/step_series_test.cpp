#include "traces/kineto/step_series.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "profiles/error.h"
#include "tests/traces/kineto/kineto_import.h"

namespace frazil {
namespace {

using Times = std::vector<std::int64_t>;

// Steps of two layers, of which the second takes `extra` ns more in each further step; the first is
// warm-up.
std::string slowing_steps(int steps, bool has_steps = true) {
  KinetoText text;
  for (int s = 0; s < steps; ++s) {
    const std::int64_t at = 10'000 * (s + 1);
    const std::int64_t extra = 10 * s;
    if (has_steps) text.range("ProfilerStep#" + std::to_string(s), 1, at, at + 5000 + s);
    text.range("layer:a", 1, at + 100, at + 200)
        .op("aten::linear", 1, at + 110, at + 190, 10 * s + 1)
        .range("layer:b", 1, at + 200, at + 300 + extra)
        .op("aten::linear", 1, at + 210, at + 290, 10 * s + 3)
        .node("AddmmBackward0", 1, at + 1400, at + 1500, 10 * s + 3)
        .node("AddmmBackward0", 1, at + 1600, at + 1700, 10 * s + 1);
  }
  return text.text();
}

StepSeries read_series(const std::string& text, const KinetoOptions& options = {}) {
  const TraceFile file(text, "t.json");
  return read_step_series(file.path(), options);
}

TEST(StepSeries, HasTheTimesOfEachCountedStep) {
  const StepSeries series = read_series(slowing_steps(4));
  ASSERT_EQ(series.layers.size(), 2U);
  EXPECT_EQ(series.layers[0].name, "layer:a");
  EXPECT_EQ(series.layers[1].name, "layer:b");
  EXPECT_EQ(series.steps, (Times{5001, 5002, 5003}));
  EXPECT_EQ(series.communication, (Times{0, 0, 0}));
  EXPECT_EQ(series.gpus, std::vector<std::string>{"x"});
  const Times& a = series.layers[0].times;
  const Times& b = series.layers[1].times;
  ASSERT_EQ(a.size(), 3U);
  EXPECT_EQ(a[0], a[1]);
  EXPECT_EQ(b[1] - b[0], 10);
  EXPECT_EQ(b[2] - b[1], 10);
}

TEST(StepSeries, HasTheProfilesMedians) {
  const std::string text = slowing_steps(6);
  const StepSeries series = read_series(text);
  const std::vector<LayerTimes> profile = times_of(import_text(text));
  ASSERT_EQ(series.layers.size(), profile.size());
  for (std::size_t l = 0; l < profile.size(); ++l) {
    Times times = series.layers[l].times;
    std::sort(times.begin(), times.end());
    EXPECT_EQ(times[times.size() / 2], profile[l].forward + profile[l].input + profile[l].weight);
  }
}

TEST(StepSeries, CommunicationIsSummedByStep) {
  KinetoText text;
  for (int s = 0; s < 3; ++s) {
    const std::int64_t at = 10'000 * (s + 1);
    text.range("ProfilerStep#" + std::to_string(s), 1, at, at + 5000)
        .range("layer:a", 1, at + 100, at + 200)
        .op("aten::linear", 1, at + 110, at + 190, 10 * s + 1)
        .launch(1, at + 120, 10 * s + 1)
        .kernel("gemm", at + 300, 70, 10 * s + 1)
        .launch(1, at + 400, 10 * s + 2)
        .kernel("ncclDevKernel_AllReduce", at + 500, 100 * s, 10 * s + 2);
  }
  const StepSeries series = read_series(text.text());
  EXPECT_TRUE(series.is_device_time);
  EXPECT_EQ(series.communication, (Times{100, 200}));
  EXPECT_EQ(series.layers.front().times, (Times{70, 70}));
}

TEST(StepSeries, ATraceWithoutStepsOrWantedRangesIsRefused) {
  EXPECT_THROW(read_series(slowing_steps(3, false)), InputError);
  KinetoOptions options;
  options.layer_prefix = "other:";
  options.needs_ranges = true;
  EXPECT_THROW(read_series(slowing_steps(3), options), InputError);
}

}  // namespace
}  // namespace frazil
