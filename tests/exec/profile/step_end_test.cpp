// The ends of steps are timed from the last device that comes, and what reductions take becomes a
// bandwidth that gives it back.

#include "exec/profile/step_end.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exec/profile/replica_plan.h"
#include "tests/exec/support/tiny_run.h"
#include "traces/action.h"

namespace frazil {
namespace {

Span make_span(int device, const std::string& action, int start, int end) {
  return {DeviceId{device}, Lane::kCompute, parse_action(action), TimePoint{Duration{start}},
          TimePoint{Duration{end}}};
}

// Device 1 begins 7 ns later and comes last to the reduction; device 0 comes last to the barrier.
std::vector<Span> make_step(int late = 0) {
  return {make_span(0, "0F0", 3, 10),
          make_span(1, "1:0F2", 10, 30),
          make_span(0, "0REDUCE_GRAD", 10, 50),
          make_span(1, "1:0REDUCE_GRAD", 30, 45 + late),
          make_span(1, "BARRIER", 45 + late, 70 + late),
          make_span(0, "BARRIER", 50 + late, 62 + late)};
}

TEST(StepEndMeter, CountsFromTheLastDeviceThatComesToTheLastThatIsDone) {
  StepEndMeter meter;
  meter.add_step(make_step());
  EXPECT_EQ(meter.reduction(), Duration{20});
  EXPECT_EQ(meter.commit_round(), Duration{20});
  EXPECT_EQ(meter.hand_out(), Duration{7});
}

TEST(StepEndMeter, LeavesTheLongestOutAndSaysNothingOfWhatWasNotThere) {
  StepEndMeter meter;
  EXPECT_EQ(meter.reduction(), Duration{0});
  for (int i = 0; i < 9; ++i) meter.add_step(make_step());
  meter.add_step(make_step(1'000'000));
  EXPECT_EQ(meter.reduction(), Duration{20});
  StepEndMeter forward_only;
  forward_only.add_step(std::vector<Span>{make_span(0, "0F0", 3, 10)});
  EXPECT_EQ(forward_only.commit_round(), Duration{0});
  EXPECT_EQ(forward_only.hand_out(), Duration{0});
}

std::int64_t count_parameters(const ModelProfile& structure) {
  std::int64_t bytes = 0;
  for (const Layer& layer : structure.layers) bytes += layer.parameters.count;
  return bytes;
}

// Two owners with a node each exchange halves twice: as many bytes as there are, in two steps. Of
// three, each sends both others two thirds.
TEST(ReductionBandwidth, IsThatOfTheBytesAndHopsOfTheExchange) {
  const ModelProfile structure = structure_of(tiny_config());
  const auto bytes = static_cast<double>(count_parameters(structure));
  const Duration latency{100};
  const auto rate = [&](int devices, Duration time) {
    const Plan plan = make_replica_plan(structure, devices, 2);
    return static_cast<double>(find_reduction_bandwidth(time, plan, structure, latency).count);
  };
  EXPECT_NEAR(rate(2, Duration{10'200}), bytes / 10'000 * 1e9, 1);
  EXPECT_NEAR(rate(3, Duration{10'400}) / (bytes * 4 / 3 / 10'000 * 1e9), 1, 1e-3);
}

TEST(ReductionBandwidth, IsUnlimitedWhereNothingIsReduced) {
  const ModelProfile structure = structure_of(tiny_config());
  const Plan halves = make_halves_plan(structure, 2);
  EXPECT_EQ(find_reduction_bandwidth(Duration{1000}, halves, structure, {}).count, 0);
  const Plan alone = make_replica_plan(structure, 1, 2);
  EXPECT_EQ(find_reduction_bandwidth(Duration{1000}, alone, structure, {}).count, 0);
}

// A reduction that took no longer than its hops gives no nonsense.
TEST(ReductionBandwidth, HasABound) {
  const ModelProfile structure = structure_of(tiny_config());
  const Plan plan = make_replica_plan(structure, 2, 2);
  const BytesPerSecond rate = find_reduction_bandwidth({}, plan, structure, Duration{100});
  EXPECT_GT(rate.count, 0);
  EXPECT_LE(rate.count, 1'000'000'000'000'000);
}

}  // namespace
}  // namespace frazil
