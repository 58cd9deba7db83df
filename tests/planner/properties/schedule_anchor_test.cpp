// Compares thirteen schedules on twenty sizes and cost sets with figures of an independent
// simulation (data/schedule_anchor.csv: makespan, span, bubbles, and peaks in micro-batches). Its
// rules are: a message takes `tC` and no link; a chunk takes 1 / v of a device's share, or all of
// it in the schedules that run both ways; work done at I frees half of a micro-batch, or nothing
// before W.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "planner/orders/make_orders.h"
#include "planner/plan/schedule_facts.h"
#include "planner/what_if/what_if.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

constexpr double kUnit = 1e6;  // ns in one unit of the file

struct Anchor {
  std::string schedule;
  std::vector<double> numbers;  // the other columns
  int integer(std::size_t column) const { return static_cast<int>(numbers.at(column)); }
};
enum Column : std::size_t {
  kDevices,
  kMicroBatches,
  kChunks,
  kForward,
  kInput,
  kWeight,
  kHop,
  kMakespan,
  kSpan,
  kIdeal,
  kBubble,
  kBubbleOfSpan,
  kPeakFirst,
  kPeakAtWeight,
  kPeakAtInput
};

std::vector<Anchor> read_anchors() {
  std::ifstream file(std::string(FRAZIL_SOURCE_FOLDER) +
                     "/tests/planner/properties/schedule_anchor.csv");
  std::vector<Anchor> anchors;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    Anchor anchor;
    std::getline(cells, anchor.schedule, ',');
    for (std::string cell; std::getline(cells, cell, ',');) {
      anchor.numbers.push_back(std::stod(cell));
    }
    anchors.push_back(anchor);
  }
  return anchors;
}

ScheduleKind kind_of(const std::string& schedule) {
  const std::vector<std::pair<std::string, ScheduleKind>> names{
      {"GPipe", ScheduleKind::kGpipe},
      {"1F1B", ScheduleKind::kOneForwardOneBackward},
      {"Interleaved1F1B", ScheduleKind::kInterleaved},
      {"LoopedBFS", ScheduleKind::kLoopedBfs},
      {"ZB-H1", ScheduleKind::kZbH1},
      {"ZB-H2", ScheduleKind::kZbH2},
      {"InterleavedZB", ScheduleKind::kInterleavedZb},
      {"ZB-V", ScheduleKind::kZbV},
      {"DualPipeV", ScheduleKind::kDualPipeV},
      {"DualPipe", ScheduleKind::kDualPipe},
      {"Chimera", ScheduleKind::kChimera}};
  const std::string name = schedule.substr(0, schedule.find(' '));
  for (const auto& [known, kind] : names) {
    if (known == name) return kind;
  }
  throw std::runtime_error("an unknown schedule " + schedule);
}

WhatIf ask(const Anchor& anchor) {
  const auto time = [&](Column column) {
    return Duration{std::llround(anchor.numbers.at(column) * kUnit)};
  };
  WhatIf what_if;
  what_if.schedule = kind_of(anchor.schedule);
  what_if.stages = anchor.integer(kDevices);
  what_if.micro_batches = anchor.integer(kMicroBatches);
  // The file counts both replicas of a schedule that runs both ways as chunks.
  const Placement placement = facts_of(what_if.schedule).placement;
  what_if.chunks = anchor.integer(kChunks) / directions(placement);
  what_if.forward = {time(kForward)};
  what_if.backward_input = {time(kInput)};
  what_if.backward_weight = {time(kWeight)};
  what_if.hop = time(kHop);
  return what_if;
}

TEST(ScheduleAnchor, EveryRowIsMetByTheSimulator) {
  const std::vector<Anchor> anchors = read_anchors();
  ASSERT_EQ(anchors.size(), 260U);
  for (const Anchor& anchor : anchors) {
    const WhatIf what_if = ask(anchor);
    SCOPED_TRACE(anchor.schedule + " p " + std::to_string(what_if.stages) + " m " +
                 std::to_string(what_if.micro_batches));
    const WhatIfAnswer answer = answer_what_if(make_what_if(what_if));
    const double as_printed = 0.5e-4 * kUnit;  // four decimals
    const auto expect_time = [&](Duration found, Column column) {
      EXPECT_NEAR(static_cast<double>(found.count()), anchor.numbers[column] * kUnit, as_printed);
    };
    expect_time(answer.makespan, kMakespan);
    expect_time(answer.span, kSpan);
    EXPECT_NEAR(answer.bubble, anchor.numbers[kBubble], 0.6e-5);
    EXPECT_NEAR(answer.bubble_span, anchor.numbers[kBubbleOfSpan], 0.6e-5);
    const double share = 1.0 / *what_if.chunks;
    const int most = *std::max_element(answer.peak_chunks.begin(), answer.peak_chunks.end());
    EXPECT_DOUBLE_EQ(answer.peak_chunks.front() * share, anchor.numbers[kPeakFirst]);
    EXPECT_DOUBLE_EQ(most * share, anchor.numbers[kPeakAtWeight]);
  }
}

TEST(ScheduleAnchor, EveryRowIsMetByTheReferenceToo) {
  for (const Anchor& anchor : read_anchors()) {
    const WhatIf what_if = ask(anchor);
    SCOPED_TRACE(anchor.schedule + " p " + std::to_string(what_if.stages) + " m " +
                 std::to_string(what_if.micro_batches));
    const OrderProblem problem = make_order_problem(
        what_if.stages, *what_if.chunks, what_if.micro_batches,
        {what_if.forward[0], what_if.backward_input[0], what_if.backward_weight[0]}, what_if.hop);
    const ReferenceTimes times = time_orders(make_orders(what_if.schedule, problem), problem,
                                             facts_of(what_if.schedule).placement);
    const WhatIfAnswer answer = answer_what_if(make_what_if(what_if));
    EXPECT_EQ(times.makespan, answer.makespan.count());
    EXPECT_EQ(times.span, answer.span.count());
    EXPECT_EQ(times.peak_chunks, answer.peak_chunks);
    const int most =
        *std::max_element(times.peak_half_chunks.begin(), times.peak_half_chunks.end());
    EXPECT_DOUBLE_EQ(0.5 * most / *what_if.chunks, anchor.numbers[kPeakAtInput]);
  }
}

struct LeagueRow {
  ScheduleKind kind;
  int chunks;
  std::array<double, 4> bubbles;  // percent: unit costs makespan, span; measured costs the same
  double peak;                    // micro-batches
};

// The league of schedules at p = 8, m = 32 has unit costs, and (1855, 1807, 928) with a hop of 31.
TEST(ScheduleLeague, EightDevicesAndThirtyTwoMicroBatches) {
  using enum ScheduleKind;
  const std::vector<LeagueRow> league{
      {kGpipe, 1, {17.9, 17.9, 18.1, 18.1}, 32},
      {kOneForwardOneBackward, 1, {17.9, 17.9, 18.9, 18.9}, 8},
      {kInterleaved, 2, {9.9, 9.9, 10.4, 10.4}, 11.5},
      {kInterleaved, 4, {5.2, 5.2, 6.3, 6.3}, 9.75},
      {kLoopedBfs, 2, {9.9, 9.9, 10.1, 10.1}, 32},
      {kZbH1, 1, {6.8, 6.8, 12.0, 12.0}, 8},
      {kZbH2, 1, {6.8, 0, 8.2, 8.2}, 15},
      {kInterleavedZb, 2, {3.5, 3.5, 6.8, 6.8}, 8},
      {kInterleavedZb, 4, {1.8, 1.8, 4.2, 4.2}, 8},
      {kZbV, 2, {3.5, 0, 4.9, 4.9}, 8},
      {kZbVAuto, 2, {3.5, 0, 4.9, 4.6}, 8},
      {kDualPipeV, 2, {6.8, 6.8, 11.0, 11.0}, 8.5},
      {kDualPipe, 1, {5.9, 5.9, 9.2, 9.2}, 9},
      {kChimera, 1, {23.8, 23.8, 18.8, 18.8}, 8},
      {kVHalf, 2, {8.1, 8.1, 12.6, 12.6}, 5},
      {kVMin, 2, {12.3, 12.3, 29.3, 29.3}, 4},
  };
  for (const LeagueRow& row : league) {
    SCOPED_TRACE(std::string(schedule_name(row.kind)) + " v " + std::to_string(row.chunks));
    WhatIf what_if;
    what_if.stages = 8;
    what_if.micro_batches = 32;
    what_if.schedule = row.kind;
    what_if.chunks = row.chunks;
    for (const bool unit : {true, false}) {
      what_if.forward = {Duration{unit ? 1'000'000 : 1'855'000}};
      what_if.backward_input = {Duration{unit ? 1'000'000 : 1'807'000}};
      what_if.backward_weight = {Duration{unit ? 1'000'000 : 928'000}};
      what_if.hop = Duration{unit ? 0 : 31'000};
      const WhatIfAnswer answer = answer_what_if(make_what_if(what_if));
      EXPECT_NEAR(100 * answer.bubble, row.bubbles[unit ? 0 : 2], 0.05);
      EXPECT_NEAR(100 * answer.bubble_span, row.bubbles[unit ? 1 : 3], 0.05);
      const int most = *std::max_element(answer.peak_chunks.begin(), answer.peak_chunks.end());
      EXPECT_DOUBLE_EQ(static_cast<double>(most) / row.chunks, row.peak);
    }
  }
}

}  // namespace
}  // namespace frazil
