#include "sim/memory.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace frazil {
namespace {

using When = MemoryChange::When;

std::vector<MemoryPeak> peaks_of(const TaskGraph& graph, int devices) {
  std::vector<Duration> prices;
  for (const Work& work : graph.works()) {
    prices.push_back(std::get<Fixed>(work).duration);
  }
  const CompiledGraph compiled = compile(graph);
  SweepTimes times;
  evaluate(compiled, prices, times);
  return peak_memory(graph, compiled, times, prices, devices);
}

// Writes a peak such as "12 at 7: stash 2 gradients 10".
std::string to_text(const MemoryPeak& peak) {
  std::string text = fmt::format("{} at {}:", peak.total.count, peak.at.time_since_epoch().count());
  for (int kind = 0; kind < kMemoryKinds; ++kind) {
    const Bytes held = peak.held[static_cast<std::size_t>(kind)];
    if (held.count == 0) {
      continue;
    }
    text += fmt::format(" {} {}", memory_kind_name(static_cast<MemoryKind>(kind)), held.count);
  }
  return text;
}

struct MemoryBuilder {
  TaskGraph graph;

  LaneId lane(int device, Lane lane = Lane::kCompute) {
    return graph.add_lane(DeviceId{device}, lane);
  }
  TaskId task(LaneId lane, std::int64_t duration) {
    return graph.add_task(lane, graph.add_work(Fixed{Duration{duration}}));
  }
  void change(TaskId task, When when, std::int64_t delta, MemoryKind kind = MemoryKind::kStash) {
    const DeviceId device = graph.lanes()[graph.lane_of()[task]].device;
    graph.change_memory({task, when, device, kind, delta});
  }
};

TEST(Memory, TheMostOfAKindNeedNotBeThereAtThePeak) {
  MemoryBuilder builder;
  const LaneId lane = builder.lane(0);
  const TaskId first = builder.task(lane, 5);
  const TaskId second = builder.task(lane, 5);
  builder.change(first, When::kStart, 10);
  builder.change(first, When::kEnd, -10);
  builder.change(second, When::kStart, 7, MemoryKind::kGradients);
  builder.change(second, When::kEnd, -7, MemoryKind::kGradients);
  EXPECT_EQ(to_text(peaks_of(builder.graph, 1).front()), "10 at 0: stash 10");
  const std::vector<Duration> prices(2, Duration{5});
  const CompiledGraph compiled = compile(builder.graph);
  SweepTimes times;
  evaluate(compiled, prices, times);
  const MemoryTrace trace = trace_memory(builder.graph, compiled, times, prices, 1).front();
  EXPECT_EQ(trace.most[static_cast<std::size_t>(MemoryKind::kStash)], Bytes{10});
  EXPECT_EQ(trace.most[static_cast<std::size_t>(MemoryKind::kGradients)], Bytes{7});
}

TEST(Memory, WhatIsHeldFromTheStartIsThePeakOfAnIdleDevice) {
  MemoryBuilder builder;
  builder.graph.hold(DeviceId{1}, MemoryKind::kParameters, Bytes{30});
  builder.graph.hold(DeviceId{1}, MemoryKind::kOptimizer, Bytes{60});
  builder.graph.hold(DeviceId{1}, MemoryKind::kParameters, Bytes{10});
  const std::vector<MemoryPeak> peaks = peaks_of(builder.graph, 3);
  ASSERT_EQ(peaks.size(), 3u);
  EXPECT_EQ(to_text(peaks[0]), "0 at 0:");
  EXPECT_EQ(to_text(peaks[1]), "100 at 0: parameters 40 optimizer 60");
  EXPECT_EQ(to_text(peaks[2]), "0 at 0:");
}

TEST(Memory, GPipeHoldsTheStashOfEveryMicroBatch) {
  MemoryBuilder builder;
  const LaneId lane = builder.lane(0);
  builder.graph.hold(DeviceId{0}, MemoryKind::kParameters, Bytes{1000});
  for (int i = 0; i < 4; ++i) {
    builder.change(builder.task(lane, 10), When::kEnd, 7);
  }
  for (int i = 0; i < 4; ++i) {
    builder.change(builder.task(lane, 20), When::kEnd, -7);
  }
  EXPECT_EQ(to_text(peaks_of(builder.graph, 1)[0]), "1028 at 40: parameters 1000 stash 28");
}

TEST(Memory, ThePeakIsItsFirstMoment) {
  MemoryBuilder builder;
  const LaneId lane = builder.lane(0);
  for (int i = 0; i < 3; ++i) {
    const TaskId task = builder.task(lane, 10);
    builder.change(task, When::kStart, 5, MemoryKind::kReceive);
    builder.change(task, When::kEnd, -5, MemoryKind::kReceive);
  }
  EXPECT_EQ(to_text(peaks_of(builder.graph, 1)[0]), "5 at 0: receive 5");
}

TEST(Memory, WhatEndsMakesRoomForWhatStartsAtTheSameTime) {
  // The receive lane is swept after the compute lane; its end still counts before the start.
  MemoryBuilder builder;
  const TaskId first = builder.task(builder.lane(0), 10);
  const TaskId second = builder.task(0, 10);
  builder.change(second, When::kStart, 8);
  const TaskId arrival = builder.task(builder.lane(0, Lane::kReceive), 10);
  builder.change(arrival, When::kStart, 6, MemoryKind::kReceive);
  builder.change(arrival, When::kEnd, -6, MemoryKind::kReceive);
  builder.change(first, When::kStart, 1, MemoryKind::kGradients);
  EXPECT_EQ(to_text(peaks_of(builder.graph, 1)[0]), "9 at 10: gradients 1 stash 8");
}

TEST(Memory, ATaskWithoutDurationStartsBeforeItEndsAndBeforeTheNextStarts) {
  MemoryBuilder builder;
  const LaneId lane = builder.lane(0);
  builder.change(builder.task(lane, 10), When::kEnd, 3);
  const TaskId instant = builder.task(lane, 0);
  builder.change(instant, When::kEnd, -20, MemoryKind::kCache);
  builder.change(instant, When::kStart, 20, MemoryKind::kCache);
  const TaskId next = builder.task(lane, 10);
  builder.change(next, When::kStart, 10);
  EXPECT_EQ(to_text(peaks_of(builder.graph, 1)[0]), "23 at 10: stash 3 cache 20");
}

TEST(Memory, ChangesOfOneTaskAtOneMomentCountTogether) {
  // A backward turns its stash into gradients, so 10 bytes never stand beside 10.
  MemoryBuilder builder;
  const LaneId lane = builder.lane(0);
  builder.graph.hold(DeviceId{0}, MemoryKind::kStash, Bytes{10});
  const TaskId backward = builder.task(lane, 10);
  builder.change(backward, When::kEnd, 10, MemoryKind::kGradients);
  builder.change(backward, When::kEnd, -10);
  EXPECT_EQ(to_text(peaks_of(builder.graph, 1)[0]), "10 at 0: stash 10");
}

TEST(Memory, ATaskMayChangeAnotherDevice) {
  MemoryBuilder builder;
  const TaskId send = builder.task(builder.lane(0, Lane::kSend), 10);
  builder.graph.change_memory({send, When::kStart, DeviceId{1}, MemoryKind::kReceive, 4});
  const std::vector<MemoryPeak> peaks = peaks_of(builder.graph, 2);
  EXPECT_EQ(to_text(peaks[0]), "0 at 0:");
  EXPECT_EQ(to_text(peaks[1]), "4 at 0: receive 4");
}

// Two lanes of one device have tasks that all take time and hold memory while they run or from
// their end on; beside the graph stands the sum of the changes of every moment.
struct RandomChanges {
  MemoryBuilder builder;
  std::map<std::int64_t, std::int64_t> change_at;
};

RandomChanges make_random_changes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  RandomChanges made;
  made.builder.lane(0);
  made.builder.lane(0, Lane::kReceive);
  std::array<std::int64_t, 2> clock = {0, 0};
  for (int i = draw(1, 20); i > 0; --i) {
    const auto lane = static_cast<LaneId>(draw(0, 1));
    const int duration = draw(1, 5);
    const int size = draw(1, 100);
    const TaskId task = made.builder.task(lane, duration);
    const std::int64_t start = clock[lane];
    const std::int64_t end = clock[lane] += duration;
    const bool only_while_it_runs = draw(0, 1) == 0;
    made.builder.change(task, only_while_it_runs ? When::kStart : When::kEnd, size);
    made.change_at[only_while_it_runs ? start : end] += size;
    if (!only_while_it_runs) {
      continue;
    }
    made.builder.change(task, When::kEnd, -size);
    made.change_at[end] -= size;
  }
  return made;
}

TEST(Memory, AgreesWithAddingUpEveryMoment) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const RandomChanges made = make_random_changes(seed);
    std::int64_t now = 0;
    std::int64_t most = 0;
    std::int64_t at = 0;
    for (const auto& [time, change] : made.change_at) {
      now += change;
      at = now > most ? time : at;
      most = std::max(most, now);
    }
    EXPECT_EQ(to_text(peaks_of(made.builder.graph, 1)[0]),
              fmt::format("{} at {}: stash {}", most, at, most));
  }
}

bool is_refused(const TaskGraph& graph) {
  try {
    peaks_of(graph, 1);
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

// A device's curve agrees with its peak, and ends with what is held throughout if every change is
// taken back.
TEST(Memory, CurvesRiseToThePeakAtItsMoment) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    MemoryBuilder builder;
    const LaneId lane = builder.lane(0);
    builder.graph.hold(DeviceId{0}, MemoryKind::kParameters, Bytes{7});
    for (int i = 0; i < 12; ++i) {
      const TaskId task = builder.task(lane, static_cast<std::int64_t>(random() % 3));
      const auto size = static_cast<std::int64_t>(random() % 50);
      builder.change(task, When::kStart, size);
      builder.change(task, When::kEnd, -size);
    }
    std::vector<Duration> prices;
    for (const Work& work : builder.graph.works()) prices.push_back(std::get<Fixed>(work).duration);
    const CompiledGraph compiled = compile(builder.graph);
    SweepTimes times;
    evaluate(compiled, prices, times);
    const MemoryPeak peak = peak_memory(builder.graph, compiled, times, prices, 1).front();
    const MemoryTrace trace = trace_memory(builder.graph, compiled, times, prices, 1).front();
    const std::vector<MemoryMoment>& curve = trace.curve;
    EXPECT_EQ(trace.most[static_cast<std::size_t>(MemoryKind::kParameters)], Bytes{7});
    EXPECT_EQ(trace.most[static_cast<std::size_t>(MemoryKind::kStash)], peak.total - Bytes{7});
    const auto most = std::max_element(
        curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.total < b.total; });
    EXPECT_EQ(most->total, peak.total);
    EXPECT_EQ(most->at, peak.at);
    EXPECT_EQ(curve.front().at, TimePoint{});
    EXPECT_EQ(curve.back().total, Bytes{7});
    for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
      EXPECT_LE(curve[i].at, curve[i + 1].at);
      if (i + 2 < curve.size()) {
        EXPECT_LT(curve[i].at, curve[i + 2].at) << "two per time";
      }
      if (curve[i].at == curve[i + 1].at) {
        EXPECT_LE(curve[i + 1].total, curve[i].total);
      }
    }
  }
}

TEST(Memory, RefusesToHoldLessThanNothing) {
  MemoryBuilder builder;
  builder.change(builder.task(builder.lane(0), 10), When::kEnd, -1);
  EXPECT_TRUE(is_refused(builder.graph));
  builder.graph.hold(DeviceId{0}, MemoryKind::kParameters, Bytes{5});
  EXPECT_TRUE(is_refused(builder.graph));  // parameters do not become stash
  builder.graph.hold(DeviceId{0}, MemoryKind::kStash, Bytes{1});
  EXPECT_FALSE(is_refused(builder.graph));
}

TEST(Memory, RefusesUnknownDevicesAndTasks) {
  MemoryBuilder held;
  held.graph.hold(DeviceId{1}, MemoryKind::kStash, Bytes{1});
  EXPECT_TRUE(is_refused(held.graph));
  MemoryBuilder changed;
  changed.graph.change_memory({7, When::kStart, DeviceId{0}, MemoryKind::kStash, 1});
  EXPECT_TRUE(is_refused(changed.graph));
}

TEST(Memory, NamesItsKinds) {
  EXPECT_EQ(memory_kind_name(MemoryKind::kParameters), "parameters");
  EXPECT_EQ(memory_kind_name(MemoryKind::kCache), "cache");
}

}  // namespace
}  // namespace frazil
