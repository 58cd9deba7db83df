#include "traces/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "profiles/error.h"
#include "tests/support/golden.h"
#include "tests/traces/sample_timelines.h"

namespace frazil {
namespace {

using namespace std::chrono_literals;

TEST(Timeline, MeasuresHandMade1f1b) {
  const Timeline timeline = make_1f1b_3x4(1000);
  // The makespan is (micro-batches + devices - 1) x (F + B); each device works 4 x (F + B).
  EXPECT_EQ(makespan(timeline), 18us);
  EXPECT_EQ(busy(timeline, DeviceId{0}), 12us);
  EXPECT_EQ(busy(timeline), 36us);
  EXPECT_EQ(span_of(timeline, DeviceId{0}), 18us);
  EXPECT_EQ(span_of(timeline, DeviceId{1}), 15us);
  EXPECT_EQ(span_of(timeline, DeviceId{2}), 12us);
  EXPECT_EQ(max_span(timeline), 18us);
  EXPECT_DOUBLE_EQ(bubble(timeline), 1.0 / 3);
  EXPECT_DOUBLE_EQ(bubble_of_span(timeline), 1.0 / 3);
}

TEST(Timeline, DrawsHandMade1f1b) {
  EXPECT_TRUE(matches_golden("traces_1f1b_3x4.txt", draw(make_1f1b_3x4(1000), 1us)));
}

TEST(Timeline, KnowsMakespanFromSpan) {
  Timeline timeline{.devices = 2, .spans = {make_span(0, "0F0", 0, 6), make_span(1, "1F0", 6, 12)}};
  EXPECT_EQ(makespan(timeline), 12ns);
  EXPECT_EQ(max_span(timeline), 6ns);
  EXPECT_DOUBLE_EQ(bubble(timeline), 0.5);
  EXPECT_DOUBLE_EQ(bubble_of_span(timeline), 0);
  timeline.devices = 4;  // two idle ones
  EXPECT_DOUBLE_EQ(bubble(timeline), 0.75);
}

TEST(Timeline, CountsOnlyComputeAsBusy) {
  const Timeline timeline{
      .devices = 1,
      .spans = {make_span(0, "0F0", 0, 1), make_span(0, "0R0", 1, 3), make_span(0, "0U", 3, 7),
                make_span(0, "(0F1;0B0)OVERLAP_F_B", 7, 15), make_span(0, "BARRIER", 15, 31),
                make_span(0, "0SEND_F0", 0, 32, Lane::kSend),
                make_span(0, "0REDUCE_GRAD", 15, 64, Lane::kCollective),
                make_span(0, "0F2", 31, 40, Lane::kHost)}};
  EXPECT_EQ(busy(timeline), 15ns);
  EXPECT_EQ(makespan(timeline), 64ns);
}

TEST(Timeline, OfNothingMeasuresZero) {
  const Timeline timeline{.devices = 3, .spans = {}};
  EXPECT_EQ(makespan(timeline), 0ns);
  EXPECT_EQ(span_of(timeline, DeviceId{1}), 0ns);
  EXPECT_EQ(max_span(timeline), 0ns);
  EXPECT_EQ(busy(timeline), 0ns);
  EXPECT_EQ(bubble(timeline), 0);
  EXPECT_EQ(bubble_of_span(timeline), 0);
  EXPECT_TRUE(steps_of(timeline).empty());
  EXPECT_EQ(step_of(timeline, 0), timeline);
  EXPECT_EQ(draw(timeline, 1ns), "d0 ||\nd1 ||\nd2 ||\n");
  EXPECT_EQ(draw(Timeline{}, 1ns), "");
}

// The oracle marks every nanosecond of every device.
TEST(Timeline, AgreesWithMarkedNanoseconds) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomActions random(seed);
    const Timeline timeline = make_random_timeline(random);
    std::map<int, std::set<std::int64_t>> working;
    std::map<int, std::set<std::int64_t>> instants;
    std::set<std::int64_t> all;
    for (const Span& span : timeline.spans) {
      const std::int64_t start = span.start.time_since_epoch().count();
      const std::int64_t end = span.end.time_since_epoch().count();
      instants[span.device.value].insert({start, end});
      all.insert({start, end});
      if (span.lane != Lane::kCompute || !is_compute(span.action.kind)) continue;
      for (std::int64_t time = start; time < end; ++time) working[span.device.value].insert(time);
    }
    std::int64_t total = 0;
    std::int64_t longest = 0;
    for (int device = 0; device < timeline.devices; ++device) {
      const auto& seen = instants[device];
      const std::int64_t length = seen.empty() ? 0 : *seen.rbegin() - *seen.begin();
      const auto worked = static_cast<std::int64_t>(working[device].size());
      ASSERT_EQ(busy(timeline, DeviceId{device}).count(), worked);
      ASSERT_EQ(span_of(timeline, DeviceId{device}).count(), length);
      total += worked;
      longest = std::max(longest, length);
    }
    ASSERT_EQ(busy(timeline).count(), total);
    ASSERT_EQ(max_span(timeline).count(), longest);
    ASSERT_EQ(makespan(timeline).count(), all.empty() ? 0 : *all.rbegin() - *all.begin());
  }
}

TEST(Timeline, SortsByStartDeviceLaneEndAndStep) {
  const std::vector<Span> sorted = {
      make_span(1, "1F9", 0, 9),
      make_span(0, "0F9", 5, 9),
      make_span(0, "0SEND_F0", 5, 6, Lane::kSend),
      make_span(0, "0SEND_F0", 5, 6, Lane::kSend, 1),
      make_span(0, "0SEND_F0", 5, 7, Lane::kSend),
      make_span(1, "1F0", 5, 5),
  };
  std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
  do {
    Timeline timeline{.devices = 2, .spans = {}};
    for (const std::size_t i : order) timeline.spans.push_back(sorted[i]);
    sort_spans(timeline);
    ASSERT_EQ(timeline.spans, sorted);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Timeline, KeepsTheOrderOfActionsThatTakeNoTime) {
  const std::vector<Span> ran = {make_span(0, "0W9", 5, 5), make_span(0, "0F10", 5, 5),
                                 make_span(0, "0I10", 5, 5), make_span(0, "0F2", 5, 7)};
  Timeline timeline{.devices = 1, .spans = {ran[3], ran[0], ran[1], ran[2]}};
  sort_spans(timeline);
  EXPECT_EQ(timeline.spans, ran);
}

TEST(Timeline, CutsOutOneStep) {
  const Timeline timeline{.devices = 2,
                          .spans = {make_span(0, "0F0", 100, 110, Lane::kCompute, 7),
                                    make_span(0, "0F0", 130, 140, Lane::kCompute, 9),
                                    make_span(1, "1F0", 110, 125, Lane::kCompute, 7)}};
  EXPECT_EQ(steps_of(timeline), (std::vector<Step>{7, 9}));
  const Timeline expected{.devices = 2,
                          .spans = {make_span(0, "0F0", 0, 10, Lane::kCompute, 7),
                                    make_span(1, "1F0", 10, 25, Lane::kCompute, 7)}};
  EXPECT_EQ(step_of(timeline, 7), expected);
  EXPECT_EQ(step_of(timeline, 8), (Timeline{.devices = 2, .spans = {}}));
}

TEST(Timeline, ListsEachStepOnceInOrder) {
  Timeline timeline{.devices = 1, .spans = {}};
  for (const Step step : {3, 1, 3, 2, 1, 1}) {
    timeline.spans.push_back(make_span(0, "0F0", 0, 0, Lane::kCompute, step));
  }
  EXPECT_EQ(steps_of(timeline), (std::vector<Step>{1, 2, 3}));
}

TEST(Timeline, DrawsEachKindWithItsOwnSign) {
  const Timeline timeline{
      .devices = 1,
      .spans = {make_span(0, "0F13", 0, 2), make_span(0, "0I1", 2, 4), make_span(0, "0W1", 4, 6),
                make_span(0, "0B21", 6, 8), make_span(0, "0R0", 8, 9),
                make_span(0, "(0F4;0B2)OVERLAP_F_B", 9, 13), make_span(0, "0W2-5", 13, 14),
                make_span(0, "0REDUCE_GRAD", 13, 17, Lane::kCollective),
                make_span(0, "0SEND_F0", 17, 19, Lane::kSend), make_span(0, "0U", 19, 20)}};
  EXPECT_EQ(draw(timeline, 1ns), "d0 |33bbBBbb*4c4cC===  U|\n");
}

TEST(Timeline, DrawsWhatRunsInTheMiddleOfAColumn) {
  const Timeline timeline{
      .devices = 1,
      .spans = {make_span(0, "0F1", 1000, 1005), make_span(0, "0F2", 1005, 1014),
                make_span(0, "0F3", 1014, 1016), make_span(0, "0F4", 1016, 1026)}};
  // The middles lie at 1005, 1015 and 1025; the last column is cut.
  EXPECT_EQ(draw(timeline, 10ns), "d0 |234|\n");
}

TEST(Timeline, DrawsRowsOfOneWidth) {
  Timeline timeline{.devices = 11,
                    .spans = {make_span(10, "0F1", 0, 2), make_span(1, "0F2", 1, 2)}};
  const std::string picture = draw(timeline, 1ns);
  EXPECT_EQ(picture.substr(0, 20), "d0  |  |\nd1  | 2|\nd2");
  EXPECT_NE(picture.find("d10 |11|\n"), std::string::npos);
}

TEST(Timeline, RefusesPicturesWithoutASize) {
  const Timeline timeline{.devices = 1, .spans = {make_span(0, "0F0", 0, 2'000'000)}};
  EXPECT_THROW(draw(timeline, 0ns), std::logic_error);
  EXPECT_THROW(draw(timeline, 1ns), std::logic_error);
}

TEST(Lane, HasANameThatIsReadBack) {
  for (int lane = 0; lane < 5; ++lane) {
    const auto value = static_cast<Lane>(lane);
    EXPECT_EQ(parse_lane(lane_name(value), "lanes", 1), value);
  }
  EXPECT_EQ(lane_name(Lane::kCompute), "compute");
  EXPECT_THROW(parse_lane("Compute", "lanes", 1), InputError);
  EXPECT_THROW(parse_lane("", "lanes", 1), InputError);
}

}  // namespace
}  // namespace frazil
