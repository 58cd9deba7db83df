#include "planner/order_search/order_timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planner/order_search/order_moves.h"
#include "planner/order_search/order_seeds.h"
#include "profiles/error.h"
#include "tests/planner/support/linear_pipelines.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

Words parse(const std::vector<std::string>& texts) {
  Words words;
  for (const std::string& text : texts) {
    Word& word = words.emplace_back();
    for (const char letter : text) {
      word.push_back(letter == 'F' ? Letter::kF : letter == 'I' ? Letter::kI : Letter::kW);
    }
  }
  return words;
}

LinearPipeline two_stages(int micro_batches, int in_flight) {
  const StageTimes times{Duration{3}, Duration{2}, Duration{1}};
  LinearPipeline pipeline;
  pipeline.times = {times, times};
  pipeline.down = {Duration{4}};
  pipeline.up = {Duration{5}};
  pipeline.micro_batches = micro_batches;
  pipeline.in_flight = {in_flight, in_flight};
  return pipeline;
}

std::vector<std::vector<OrderTiming::Time>> ends_of(const OrderTiming& timing) {
  std::vector<std::vector<OrderTiming::Time>> ends(timing.stages());
  for (std::size_t s = 0; s < timing.stages(); ++s) {
    for (std::size_t i = 0; i < timing.length(); ++i) ends[s].push_back(timing.end_of({s, i}));
  }
  return ends;
}

// d0  FFFFFF...............IIWIIW
// d1  .......FFFIIWFFFIIW
TEST(OrderTiming, StartsWorkWhenTheDeviceIsFreeAndItsMessageIsThere) {
  OrderTiming timing(two_stages(2, 2), Objective::kMakespan);
  ASSERT_TRUE(timing.assign(parse({"FFIWIW", "FIWFIW"})));
  EXPECT_EQ(ends_of(timing), (std::vector<std::vector<OrderTiming::Time>>{
                                 {3, 6, 19, 20, 25, 26}, {10, 12, 13, 16, 18, 19}}));
  EXPECT_EQ(timing.makespan(), Duration{26});
  EXPECT_EQ(timing.span(), Duration{26});
  EXPECT_EQ(timing.longest(), Duration{26});
  EXPECT_EQ(timing.score(), 1024 * 26 + (26 + 19) / 2);
  OrderTiming spans(two_stages(2, 2), Objective::kSpan);
  ASSERT_TRUE(spans.assign(parse({"FFIWIW", "FIWFIW"})));
  EXPECT_EQ(spans.score(), 1024 * 26 + (26 + 12) / 2);
}

TEST(OrderTiming, KnowsALongestPath) {
  OrderTiming timing(two_stages(2, 2), Objective::kMakespan);
  ASSERT_TRUE(timing.assign(parse({"FFIWIW", "FIWFIW"})));
  std::vector<WordPlace> path;
  timing.find_critical_path(path);
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const WordPlace& place : path) places.emplace_back(place.stage, place.position);
  EXPECT_EQ(places, (std::vector<std::pair<std::size_t, std::size_t>>{
                        {0, 5}, {0, 4}, {1, 4}, {1, 3}, {1, 2}, {1, 1}, {1, 0}, {0, 0}}));
}

TEST(OrderTiming, HoldsNoOrderThatIsNone) {
  OrderTiming timing(two_stages(2, 1), Objective::kMakespan);
  EXPECT_TRUE(timing.assign(parse({"FIWFIW", "FIWFIW"})));
  EXPECT_FALSE(timing.assign(parse({"FFIWIW", "FIWFIW"})));  // two held, and one fits
  EXPECT_FALSE(timing.assign(parse({"FIWFIW", "FWIFIW"})));
  EXPECT_FALSE(timing.assign(parse({"FIWFIW", "IFWFIW"})));
  EXPECT_FALSE(timing.assign(parse({"FIWFIW", "FIWFI"})));
  EXPECT_FALSE(timing.assign(parse({"FIWFIW", "FIWFFIWIW"})));
  EXPECT_FALSE(timing.assign(parse({"FIWFIW", "FFIWIW"})));  // and the stages wait for each other
  LinearPipeline halves = two_stages(2, 1);
  halves.release = ActivationRelease::kHalfAtInput;
  OrderTiming in_halves(halves, Objective::kMakespan);
  EXPECT_FALSE(in_halves.assign(parse({"FIFWIW", "FIWFIW"})));
  halves.in_flight = {2, 1};
  OrderTiming roomier(halves, Objective::kMakespan);
  EXPECT_TRUE(roomier.assign(parse({"FIFWIW", "FIWFIW"})));
}

TEST(OrderTiming, SeesADeadlockOfWorkWithoutLength) {
  LinearPipeline pipeline = two_stages(2, 2);
  for (StageTimes& times : pipeline.times) times = {Duration{0}, Duration{0}, Duration{7}};
  pipeline.down = pipeline.up = {Duration{0}};
  OrderTiming timing(pipeline, Objective::kMakespan);
  EXPECT_FALSE(timing.assign(parse({"FIWFIW", "FFIIWW"})));
  ASSERT_TRUE(timing.assign(parse({"FIWFIW", "FIWFIW"})));
  EXPECT_EQ(timing.makespan(), Duration{14});
  const Word later = parse({"FFIIWW"}).front();
  EXPECT_FALSE(timing.replace(1, 0, later, timing.score() * 100));
  EXPECT_EQ(timing.words(), parse({"FIWFIW", "FIWFIW"}));
}

TEST(OrderTiming, RefusesFusedBackwardsAndEndlessTimes) {
  LinearPipeline fused = two_stages(2, 2);
  fused.splits_backward = false;
  EXPECT_THROW(OrderTiming(fused, Objective::kMakespan), InfeasibleError);
  LinearPipeline endless = two_stages(2, 2);
  endless.times[0].forward = Duration{std::int64_t{1} << 44};
  EXPECT_THROW(OrderTiming(endless, Objective::kMakespan), InfeasibleError);
}

TEST(OrderTiming, IsThatOfTheReference) {
  int orders = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const LinearPipeline pipeline = draw_equal_hops(random, 6, 12);
    const OrderProblem problem = problem_of(pipeline);
    for (const Words& words : make_seed_orders(pipeline)) {
      OrderTiming timing(pipeline, Objective::kSpan);
      if (!timing.assign(words)) continue;
      ++orders;
      const ReferenceTimes expected = time_orders(to_orders(words), problem, Placement::kLinear);
      ASSERT_EQ(timing.makespan(), Duration{expected.makespan});
      ASSERT_EQ(timing.span(), Duration{expected.span});
      ASSERT_EQ(timing.longest(), Duration{expected.span});
    }
  }
  EXPECT_GE(orders, 3000);
}

// Moves are tried with every kind of limit. A move that is kept is timed as if anew; a move that is
// not kept gives no order or a score above the limit, and leaves everything as it was.
TEST(OrderTiming, AfterAMoveIsThatOfTheWholeOrderTimedAnew) {
  int kept = 0, refused = 0, above = 0;
  OrderMove move;
  std::vector<WordPlace> critical;
  for (std::uint64_t seed = 0; kept + refused + above < 150'000; ++seed) {
    Random random(seed);
    const LinearPipeline pipeline = draw_linear_pipeline(random, 6, 14);
    const Objective objective = seed % 2 == 0 ? Objective::kMakespan : Objective::kSpan;
    OrderTiming timing(pipeline, objective);
    OrderTiming anew(pipeline, objective);
    ASSERT_TRUE(timing.assign(make_seed_orders(pipeline).back()));
    MoveMaker moves(seed);
    for (int i = 0; i < 1000; ++i) {
      timing.find_critical_path(critical);
      if (!moves.draw(timing, critical, move)) continue;
      Words words = timing.words();
      std::copy(move.letters.begin(), move.letters.end(),
                words[move.stage].begin() + static_cast<std::ptrdiff_t>(move.first));
      const OrderTiming::Time limit =
          timing.score() / 100 * static_cast<OrderTiming::Time>(95 + draw(random, 0, 25));
      const bool is_order = anew.assign(words);
      const bool expected = is_order && anew.score() <= limit;
      ++(expected ? kept : is_order ? above : refused);
      const Words before = timing.words();
      ASSERT_EQ(timing.replace(move.stage, move.first, move.letters, limit), expected)
          << "seed " << seed << " move " << i;
      ASSERT_TRUE(anew.assign(expected ? words : before));
      ASSERT_EQ(timing.words(), expected ? words : before) << "seed " << seed << " move " << i;
      ASSERT_EQ(ends_of(timing), ends_of(anew)) << "seed " << seed << " move " << i;
      ASSERT_EQ(timing.score(), anew.score()) << "seed " << seed << " move " << i;
    }
  }
  EXPECT_GE(kept, 5'000);
  EXPECT_GE(refused, 5'000);
  EXPECT_GE(above, 5'000);
}

}  // namespace
}  // namespace frazil
