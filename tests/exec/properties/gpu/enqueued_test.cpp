// The host runs ahead of the streams of a GPU: it waits once a step, and spans come from events.

#include <chrono>
#include <map>
#include <utility>

#include "exec/devices/steady_time.h"
#include "tests/exec/properties/gpu/gpu_test.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

class GpuEnqueued : public GpuTest {};

TEST_F(GpuEnqueued, AStepIsWaitedForOnceAndItsSpansLieWithinIt) {
  frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = streams()});
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{4}}}));
  for (Step step = 0; step < 3; ++step) run.step(step, 1e-2, small_micro_batches(step, 6));
  const std::int64_t before = run.devices()[0].host_waits();
  const SteadyTime start = std::chrono::steady_clock::now();
  const StepResult result = run.step(3, 1e-2, small_micro_batches(3, 6), /*record=*/true);
  const Duration time = since(start);
  EXPECT_EQ(run.devices()[0].host_waits() - before, 1);
  std::map<std::pair<DeviceId, Lane>, TimePoint> ends;
  for (const Span& span : result.spans) {
    EXPECT_LE(span.start, span.end) << to_text(span.action);
    TimePoint& end = ends.try_emplace({span.device, span.lane}, span.start).first->second;
    EXPECT_LE(end, span.start) << to_text(span.action);
    end = span.end;
  }
  // Clocks are laid to each other when a step begins, to some microseconds.
  EXPECT_LE(makespan({2, result.spans}), time + std::chrono::microseconds(200));
  EXPECT_GE(makespan({2, result.spans}), time / 4);
}

// What is read of a step at its end are the numbers that a host that waits reads in between.
TEST_F(GpuEnqueued, NumbersAreThoseOfAHostThatWaits) {
  const auto measure = [](bool waits) {
    frazil::Run run(make_vit(small_config()), {}, 7, 2, {.devices = streams(true, waits)});
    run.transition_to(make_small_plan(run.structure(), {.cuts = {{4}}}));
    run.measure({.layers = true, .gradient_squares = true});
    return run.step(0, 1e-2, small_micro_batches(0, 6));
  };
  const StepResult ahead = measure(false);
  const StepResult waiting = measure(true);
  EXPECT_EQ(ahead.loss, waiting.loss);
  EXPECT_EQ(ahead.gradient_squares, waiting.gradient_squares);
  EXPECT_EQ(ahead.non_finite_gradient, waiting.non_finite_gradient);
}

}  // namespace
}  // namespace frazil
