#include "planner/trajectory/forecast_segments.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/support/mask_of.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

FreezeTrace masks_of_trace(const std::vector<std::pair<Step, std::string>>& masks, Step steps) {
  FreezeTrace trace;
  trace.blocks.assign(4, "block");
  trace.steps = steps;
  for (const auto& [step, mask] : masks)
    trace.events.push_back({step, MaskEvent{mask_of(mask.c_str())}});
  return trace;
}

class ForecastSegments : public testing::Test {
 protected:
  void drift(Step step, std::vector<std::int64_t> devices, std::vector<std::int64_t> layers = {},
             DriftChange change = DriftChange::kDeclined) {
    if (layers.empty()) layers.assign(4, kMillion);
    trace.events.push_back({step, DriftEvent{.change = change,
                                             .devices_ppm = std::move(devices),
                                             .layers_ppm = std::move(layers)}});
  }
  std::vector<ForecastSegment> split() const {
    return split_at_drifts(find_segments(trace, "t"), trace, "t", {profile, cluster});
  }
  std::string refusal() const {
    try {
      (void)split();
    } catch (const InputError& error) {
      return error.what();
    }
    return "taken";
  }
  static CostScales scales(std::vector<std::int64_t> devices,
                           std::vector<std::int64_t> layers = {kMillion, kMillion, kMillion,
                                                               kMillion}) {
    return {.device_ppm = std::move(devices), .layer_ppm = std::move(layers)};
  }

  FreezeTrace trace = masks_of_trace({{10, "0111"}}, 40);
  ModelProfile profile = make_chain(4, microseconds{100}, microseconds{100}, microseconds{100});
  Cluster cluster = make_uniform_cluster(2, Bytes{100'000}, Link{});
};

TEST_F(ForecastSegments, AreTheMasksOfATrace) {
  const std::vector<ForecastSegment> segments =
      find_segments(masks_of_trace({{0, "0111"}, {5, "0111"}, {9, "0011"}}, 20), "t");
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0], (ForecastSegment{0, 9, mask_of("0111")}));
  EXPECT_EQ(segments[1], (ForecastSegment{9, 11, mask_of("0011")}));
  EXPECT_EQ(find_segments(masks_of_trace({{3, "0111"}, {3, "1111"}}, 4), "t").size(), 1U);
  EXPECT_EQ(find_segments(masks_of_trace({{4, "0111"}}, 4), "t").size(), 1U)
      << "after the last step";
  EXPECT_THROW(find_segments(masks_of_trace({{5, "0111"}}, 4), "t"), InputError);
  EXPECT_THROW(find_segments(masks_of_trace({}, 0), "t"), InputError);
}

TEST_F(ForecastSegments, AreLeftAsTheyAreByATraceWithoutDrifts) {
  EXPECT_EQ(split(), find_segments(trace, "t"));
  drift(20, {kMillion, kMillion});
  EXPECT_EQ(split(), find_segments(trace, "t")) << "of what takes a million millionths";
  EXPECT_TRUE(tell_measured_costs(split()).empty());
}

// Inside a segment, where a mask begins, and twice in one step, of which the later counts.
TEST_F(ForecastSegments, AreSplitWhereCostsHaveDrifted) {
  trace.events.clear();
  drift(4, {kMillion, 1'300'000}, {}, DriftChange::kReplanned);
  trace.events.push_back({10, MaskEvent{mask_of("0111")}});
  drift(10, {kMillion, 1'500'000});
  drift(10, {kMillion, 1'400'000}, {kMillion, kMillion, 2'000'000, kMillion});
  drift(30, {kMillion, kMillion});
  const CostScales both = scales({kMillion, 1'400'000}, {kMillion, kMillion, 2'000'000, kMillion});
  const std::vector<ForecastSegment> expected{
      {0, 4, mask_of("1111")},
      {4, 6, mask_of("1111"), scales({kMillion, 1'300'000})},
      {10, 20, mask_of("0111"), both},
      {30, 10, mask_of("0111")}};
  EXPECT_EQ(split(), expected);
  const std::string how =
      ", as the run measured beside its profile and cluster; that is hindsight, "
      "not known before";
  EXPECT_EQ(
      tell_measured_costs(split()),
      (std::vector<std::string>{"from step 4 on device 1 takes 1.30 x" + how,
                                "from step 10 on device 1 takes 1.40 x, layer 2 takes 2.00 x" + how,
                                "from step 30 on costs are those of profile and cluster again"}));
}

// A drift lasts over the masks after it.
TEST_F(ForecastSegments, KeepTheirCostsUntilTheNextDrift) {
  trace.events.insert(trace.events.begin(),
                      {0, DriftEvent{.devices_ppm = {900'000, kMillion},
                                     .layers_ppm = {kMillion, kMillion, kMillion, kMillion}}});
  drift(20, {900'000, kMillion});  // the same again
  drift(40, {1, 1});               // after the last step
  const std::vector<ForecastSegment> expected{
      {0, 10, mask_of("1111"), scales({900'000, kMillion})},
      {10, 30, mask_of("0111"), scales({900'000, kMillion})}};
  EXPECT_EQ(split(), expected);
}

TEST_F(ForecastSegments, AreRefusedWithDriftsOfAnotherSetting) {
  const FreezeTrace without = trace;
  const auto refuse = [&](Step step, std::vector<std::int64_t> devices,
                          std::vector<std::int64_t> layers) {
    trace = without;
    drift(step, std::move(devices), std::move(layers));
    return refusal();
  };
  EXPECT_EQ(refuse(20, {kMillion}, {}),
            "t:3: found a drift of 1 device, expected one of the cluster's 2, or a trace without "
            "lines of kind x-drift");
  EXPECT_EQ(refuse(20, {kMillion, kMillion}, {kMillion}),
            "t:3: found a drift of 1 layer, expected one of the profile's 4, or a trace without "
            "lines of kind x-drift");
  EXPECT_EQ(refuse(20, {kMillion, 0}, {}),
            "t:3: found a device that takes 0 millionths, expected 1 to 1000000000000");
  EXPECT_EQ(refuse(41, {kMillion, kMillion}, {}),
            "t:3: found a drift at step 41, expected one within the 40 steps of the trace");
}

}  // namespace
}  // namespace frazil
