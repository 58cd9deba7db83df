// Tests lower bounds of plans whose stages lie on several devices.

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "planner/plan/stage_slices.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/simulate_plan.h"
#include "tests/planner/support/shared_plans.h"
#include "tests/planner/support/sliced_stages.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

TEST(SharedBounds, AreReachedByOneStageWhoseDevicesDivideTheBatch) {
  ModelProfile profile = make_chain(1, nanoseconds(10), nanoseconds(10), nanoseconds(20));
  profile.layers[0].update = nanoseconds(7);
  const Cluster cluster = make_uniform_cluster(2, Bytes{1'000'000}, {});
  const Plan plan = make_shared_plan({2}, 1, 5, {});
  const PlanBounds bounds = find_bounds(plan, {profile, cluster});
  // The first device runs F and W of three of the five micro-batches, then U.
  EXPECT_EQ(bounds.makespan.time, nanoseconds(3 * 30 + 7));
  EXPECT_EQ(bounds.makespan.name, "busiest-device");
  EXPECT_EQ(simulate_plan(plan, {profile, cluster}).makespan, bounds.makespan.time);
}

Duration longest_span(const Timeline& timeline) {
  std::vector<std::pair<TimePoint, TimePoint>> spans(static_cast<std::size_t>(timeline.devices),
                                                     {TimePoint::max(), TimePoint{}});
  Duration longest{0};
  for (const Span& span : timeline.spans) {
    if (span.lane != Lane::kCompute && span.lane != Lane::kHost) continue;
    auto& [start, end] = spans[span.device.index()];
    start = std::min(start, span.start);
    end = std::max(end, span.end);
    longest = std::max(longest, end - start);
  }
  return longest;
}

TEST(SharedBounds, NeverExceedWhatIsSimulated) {
  constexpr std::array kKinds{ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                              ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1};
  int reached = 0;
  int sliced = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    const auto up_to = [&](std::uint64_t most) { return static_cast<int>(random() % most) + 1; };
    const auto draw_devices = [&](int stages) {
      std::vector<int> devices;
      for (int s = 0; s < stages; ++s) devices.push_back(up_to(3));
      return devices;
    };
    const int stages = up_to(3);
    const std::vector<int> first = draw_devices(stages);
    const std::vector<int> second = draw_devices(stages);
    const int layers = 2 * stages;
    ModelProfile profile = make_chain(layers, {}, {}, {});
    for (Layer& layer : profile.layers) {
      layer.update = nanoseconds(up_to(20));
      for (CostSample& cost : layer.costs) {
        const int size = cost.micro_batch_size;
        cost.forward = cost.forward_frozen = nanoseconds(up_to(50)) * size;
        cost.backward_input = nanoseconds(up_to(50)) * size;
        cost.backward_weight = nanoseconds(up_to(50)) * size;
        cost.backward_weight_alone = cost.backward_weight + nanoseconds(up_to(20)) * size;
      }
    }
    Plan plan = make_shared_plan(first, 2, up_to(12), {.kind = kKinds[random() % kKinds.size()]});
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(plan));
    int devices = count(first);
    const int micro_batches = plan.batch_size;
    if (random() % 3 == 0 && micro_batches > 1) {
      const int cut = up_to(static_cast<std::uint64_t>(micro_batches - 1));
      plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{cut - 1}}};
      plan.pipelines.push_back(make_shared_pipeline(
          second, 2, {MicroBatchId{cut}, MicroBatchId{micro_batches - 1}}, devices));
      devices += count(second);
    }
    plan.micro_batch_size = up_to(4);
    plan.batch_size = plan.micro_batch_size * micro_batches - up_to(4) % plan.micro_batch_size;
    if (random() % 3 == 0) plan.mask = FreezeMask::frozen_prefix(layers, BlockId{up_to(3) - 1});
    if (random() % 4 == 0) {
      for (Stage& stage : plan.pipelines[0].stages) stage.memory = MemoryPolicy::kRecompute;
    }
    for (std::size_t s = 0; s < plan.pipelines[0].stages.size(); ++s) {
      Stage& stage = plan.pipelines[0].stages[s];
      if (random() % 2 == 0) stage.axis = DeviceAxis::kSamples;
      if (find_thin_micro_batch(plan, PipelineId{0}, StageId{s})) stage.axis = DeviceAxis::kData;
    }
    sliced += has_sliced_stage(plan.pipelines[0]) ? 1 : 0;
    if (has_sliced_stage(plan.pipelines[0])) plan.reduction = ReductionMode::kFast;
    Cluster cluster = make_uniform_cluster(
        devices, Bytes{1'000'000'000}, {nanoseconds(up_to(40) - 1), BytesPerSecond{1'000'000'000}});
    if (random() % 2 == 0) cluster.default_link.bandwidth = {};
    for (Device& device : cluster.devices) {
      device.time_ppm = 500'000 * up_to(4);
      device.step_overhead = nanoseconds(up_to(30) - 1);
    }
    const PlanBounds bounds = find_bounds(plan, {profile, cluster});
    const PlanSimulation simulation = simulate_plan(plan, {profile, cluster});
    ASSERT_LE(bounds.makespan.time, simulation.makespan) << bounds.makespan.name;
    ASSERT_LE(bounds.span.time, longest_span(simulation.timeline)) << bounds.span.name;
    reached += bounds.makespan.time == simulation.makespan ? 1 : 0;
  }
  EXPECT_GT(reached, 20);
  EXPECT_GT(sliced, 200);
}

}  // namespace
}  // namespace frazil
