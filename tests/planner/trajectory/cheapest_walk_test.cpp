// Tests the walk through segments: it is as cheap as the cheapest of all walks, tried one by one.

#include "planner/trajectory/cheapest_walk.h"

#include <gtest/gtest.h>

#include <random>

namespace frazil {
namespace {

Duration ns(std::int64_t count) { return Duration{count}; }

TrajectoryCosts random_costs(std::mt19937& random, std::size_t segments, std::size_t states) {
  const auto draw = [&](unsigned most) { return ns(static_cast<int>(random() % (most + 1))); };
  TrajectoryCosts costs;
  for (std::size_t k = 0; k < segments; ++k) {
    costs.hold.emplace_back();
    costs.change.emplace_back(states, std::vector<Duration>(states));
    for (std::size_t s = 0; s < states; ++s) {
      costs.hold[k].push_back(random() % 8 == 0 ? kFarAway : draw(20));
      for (std::size_t to = 0; to < states; ++to) {
        if (to != s) costs.change[k][s][to] = random() % 10 == 0 ? kFarAway : draw(12);
      }
    }
  }
  if (random() % 2 == 0) costs.start = random() % states;
  return costs;
}

std::optional<Duration> try_all(const TrajectoryCosts& costs) {
  std::vector<std::size_t> states(costs.segments(), 0);
  std::optional<Duration> best;
  for (;;) {
    const Duration total = cost_of(costs, states);
    if (total < kFarAway && (!best || total < *best)) best = total;
    std::size_t k = 0;
    while (k < states.size() && ++states[k] == costs.states()) states[k++] = 0;
    if (k == states.size()) return best;
  }
}

TEST(Trajectory, IsTheCheapestOfAllWalks) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int possible = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const TrajectoryCosts costs = random_costs(random, 1 + random() % 6, 1 + random() % 4);
    const auto found = find_trajectory(costs);
    const auto best = try_all(costs);
    ASSERT_EQ(found.has_value(), best.has_value()) << "trial " << trial;
    if (!found) continue;
    ++possible;
    ASSERT_EQ(found->total, *best) << "trial " << trial;
    ASSERT_EQ(cost_of(costs, found->states), found->total) << "trial " << trial;
    for (const auto& other : {hold_one(costs), follow_greedily(costs)}) {
      if (other) {
        ASSERT_GE(other->total, found->total) << "trial " << trial;
      }
    }
  }
  EXPECT_GT(possible, 2000);
}

// There are two segments of ten; the second state saves 6 in the second segment, and a transition
// costs 5, 6 or 7.
TEST(Trajectory, ChangesOnlyWhereItPays) {
  TrajectoryCosts costs;
  costs.hold = {{ns(10), ns(10)}, {ns(10), ns(4)}};
  const auto with_price = [&](std::int64_t price) {
    costs.change = {2, {{ns(0), ns(price)}, {ns(price), ns(0)}}};
    costs.start = 0;
    return *find_trajectory(costs);
  };
  EXPECT_EQ(with_price(5), (Trajectory{ns(19), {0, 1}}));
  EXPECT_EQ(with_price(7), (Trajectory{ns(20), {0, 0}}));
  EXPECT_EQ(follow_greedily(costs)->total, ns(21)) << "asks only for the next plan";
  EXPECT_EQ(with_price(6), (Trajectory{ns(20), {0, 0}})) << "an equal walk with fewer changes";
}

TEST(Trajectory, MayChangeEarlyForASegmentToCome) {
  TrajectoryCosts costs;
  costs.hold = {{ns(5), ns(6)}, {kFarAway, ns(3)}};
  costs.change = {{{ns(0), ns(1)}, {ns(1), ns(0)}}, {{ns(0), ns(9)}, {ns(9), ns(0)}}};
  costs.start = 0;
  EXPECT_EQ(find_trajectory(costs)->states, (std::vector<std::size_t>{1, 1}));
}

TEST(Trajectory, IsNoneWhereNoStateCanBeHeld) {
  TrajectoryCosts costs;
  costs.hold = {{ns(1), ns(1)}, {kFarAway, kFarAway}};
  costs.change = {2, {{ns(0), ns(1)}, {ns(1), ns(0)}}};
  EXPECT_FALSE(find_trajectory(costs).has_value());
  EXPECT_FALSE(hold_one(costs).has_value());
  EXPECT_FALSE(follow_greedily(costs).has_value());
}

}  // namespace
}  // namespace frazil
