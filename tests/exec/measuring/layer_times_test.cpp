#include "exec/measuring/layer_times.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

LayerSample sample(int layer, LayerPhase phase, int samples, int nanoseconds) {
  return {LayerId{layer}, phase, samples, Duration{nanoseconds}};
}

TEST(LayerTimes, AreMeansByLayerPhaseAndSize) {
  LayerTimes times;
  times.add({sample(0, LayerPhase::kForward, 4, 100), sample(0, LayerPhase::kForward, 8, 500),
             sample(1, LayerPhase::kForward, 4, 7000)});
  times.add({sample(0, LayerPhase::kForward, 4, 201), sample(0, LayerPhase::kBackward, 4, 30)});
  EXPECT_EQ(times.mean(LayerId{0}, LayerPhase::kForward, 4), Duration{151});  // 150.5
  EXPECT_EQ(times.mean(LayerId{0}, LayerPhase::kForward, 8), Duration{500});
  EXPECT_EQ(times.mean(LayerId{1}, LayerPhase::kForward, 4), Duration{7000});
  EXPECT_EQ(times.mean(LayerId{1}, LayerPhase::kBackward, 4), Duration{0});
  EXPECT_TRUE(times.has(LayerId{0}, LayerPhase::kBackward, 4));
  EXPECT_FALSE(times.has(LayerId{0}, LayerPhase::kBackward, 8));
}

TEST(LayerTimes, LeaveTheSlowestTenthOut) {
  LayerTimes times;
  std::vector<LayerSample> samples(19, sample(2, LayerPhase::kForward, 1, 10));
  samples.push_back(sample(2, LayerPhase::kForward, 1, 1'000'000));
  times.add(samples);
  EXPECT_EQ(times.mean(LayerId{2}, LayerPhase::kForward, 1), Duration{10});
}

TEST(LayerTimes, AddForwardLossAndBackwardButNoUpdate) {
  LayerTimes times;
  times.add({sample(3, LayerPhase::kForward, 2, 10), sample(3, LayerPhase::kLoss, 2, 200),
             sample(3, LayerPhase::kBackward, 2, 3000), sample(3, LayerPhase::kUpdate, 0, 40'000),
             sample(3, LayerPhase::kStatistics, 0, 7),
             sample(3, LayerPhase::kBackwardInput, 2, 500'000)});
  EXPECT_EQ(times.forward_and_backward(LayerId{3}, 2), Duration{3210});
  EXPECT_EQ(times.update(LayerId{3}), Duration{40'007});
}

Span span(const char* action, int begin, int end) {
  Span made;
  made.action = parse_action(action);
  made.start = TimePoint{Duration{begin}};
  made.end = TimePoint{Duration{end}};
  return made;
}

// F and B take 100 and 200 ns, their layers 80 and 150; the step takes 430 ns, its spans 400.
TEST(Overheads, AreWhatLayersAndActionsLeaveOver) {
  OverheadMeter meter;
  EXPECT_EQ(meter.overheads().per_action, Duration{0});
  EXPECT_EQ(meter.overheads().per_step, Duration{0});
  meter.add_step(
      Duration{430}, {span("0F0", 0, 100), span("0B0", 100, 300), span("0U", 300, 400)},
      {sample(0, LayerPhase::kForward, 1, 80), sample(0, LayerPhase::kBackward, 1, 150),
       sample(0, LayerPhase::kUpdate, 0, 60), sample(0, LayerPhase::kStatistics, 0, 39)});
  EXPECT_EQ(meter.overheads().per_action, Duration{35});
  EXPECT_EQ(meter.overheads().per_step, Duration{30});
}

// The update begins 40 ns after the reduction, of which the makespan of 440 ns holds as many.
TEST(Overheads, HoldTheWaitBeforeTheLastUpdateThatMakespansHold) {
  OverheadMeter meter;
  meter.add_step(Duration{450}, {span("0F0", 0, 100), span("0B0", 100, 300), span("0U", 340, 440)},
                 {});
  EXPECT_EQ(meter.overheads().per_step, Duration{50});
}

// Device 0 is done 30 ns before device 1, and waits for it besides the 40 ns of both.
TEST(Overheads, LeaveOutTheWaitForAnotherDevice) {
  OverheadMeter meter;
  std::vector<Span> spans = {span("0B0", 0, 270), span("0U", 340, 440), span("0B1", 0, 300),
                             span("0U", 340, 440)};
  spans[2].device = spans[3].device = DeviceId{1};
  meter.add_step(Duration{450}, spans, {});
  EXPECT_EQ(meter.overheads().per_step, Duration{50});

  // Device 2 has a stage of its own, shares nothing and does not wait.
  OverheadMeter with_lone_stage;
  for (Span lone : {span("1B0", 0, 250), span("1U", 250, 350)}) {
    lone.device = DeviceId{2};
    spans.push_back(lone);
  }
  with_lone_stage.add_step(Duration{450}, spans, {});
  EXPECT_EQ(with_lone_stage.overheads().per_step, Duration{50});
}

TEST(Overheads, AreNeverNegative) {
  OverheadMeter meter;
  meter.add_step(Duration{90}, {span("0F0", 0, 100)}, {sample(0, LayerPhase::kForward, 1, 120)});
  EXPECT_EQ(meter.overheads().per_action, Duration{0});
  EXPECT_EQ(meter.overheads().per_step, Duration{0});
}

}  // namespace
}  // namespace frazil
