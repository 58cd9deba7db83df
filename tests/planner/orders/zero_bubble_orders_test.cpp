#include "planner/orders/zero_bubble_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "planner/orders/linear_orders.h"
#include "profiles/error.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

using Release = ActivationRelease;

// The times of F, I, W and a hop, in any unit.
struct Costs {
  std::int64_t f = 1, i = 1, w = 1, c = 0;
  std::int64_t total() const { return f + i + w; }
};
constexpr Costs kUnit{1, 1, 1, 0};

OrderProblem make_equal(int p, int m, int in_flight, const Costs& costs) {
  OrderProblem problem =
      make_order_problem(p, 1, m, make_times(costs.f, costs.i, costs.w), Duration{costs.c});
  problem.in_flight = in_flight;
  return problem;
}

// Makes the order and checks that it is complete, does not deadlock and keeps the limit.
ReferenceTimes solve(const OrderProblem& problem, Release release = Release::kAllAtWeight) {
  const DeviceOrders orders = make_zero_bubble_order(problem, release);
  const ReferenceTimes times = time_orders(orders, problem, Placement::kLinear);
  const bool halves = release == Release::kHalfAtInput;
  for (const int peak : halves ? times.peak_half_chunks : times.peak_chunks) {
    EXPECT_LE(peak, (halves ? 2 : 1) * *problem.in_flight);
  }
  return times;
}

OrderProblem draw_problem(Random& random, int most_devices, int most_micro_batches) {
  OrderProblem problem;
  problem.devices = draw(random, 1, most_devices);
  problem.micro_batches = draw(random, 1, most_micro_batches);
  problem.in_flight = draw(random, 1, 2 * problem.devices + 1);
  problem.hop = Duration{draw(random, 0, 1) * draw(random, 0, 20)};
  const std::int64_t shortest = draw(random, 0, 20);
  for (int s = 0; s < problem.devices; ++s) {
    problem.times.push_back({Duration{draw(random, shortest, 30)},
                             Duration{draw(random, shortest, 30)},
                             Duration{draw(random, shortest, 30)}});
  }
  return problem;
}

OrderProblem with_in_flight(OrderProblem problem, int in_flight) {
  problem.in_flight = in_flight;
  return problem;
}

TEST(ZeroBubbleOrder, IsZbH1AtUnitCosts) {
  EXPECT_EQ(draw_orders(make_zero_bubble_order(make_equal(4, 8, 4, kUnit))),
            "d0: 0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 "
            "0I6 0W6 0I7 0W7\n"
            "d1: 1F0 1F1 1F2 1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1F6 1I4 1W3 1F7 1I5 1W4 1I6 "
            "1W5 1I7 1W6 1W7\n"
            "d2: 2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 "
            "2I7 2W5 2W6 2W7\n"
            "d3: 3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3F6 3I6 3W3 3F7 3I7 "
            "3W4 3W5 3W6 3W7\n");
}

// Device r runs p - r forwards; then I, from the (r+1)-th on the W that is r behind, and the next
// F.
TEST(ZeroBubbleOrder, IsZbH1AtUnitCostsForAnyPipeline) {
  for (int p = 2; p <= 9; ++p) {
    for (int m = p; m <= 3 * p; ++m) {
      DeviceOrders expected(static_cast<std::size_t>(p));
      for (int r = 0; r < p; ++r) {
        DeviceOrder& order = expected[static_cast<std::size_t>(r)];
        const auto add = [&](ActionKind kind, int micro_batch) {
          if (0 <= micro_batch && micro_batch < m) {
            order.push_back({kind, false, 0, r, micro_batch});
          }
        };
        for (int i = 0; i < p - r; ++i) add(ActionKind::kForward, i);
        for (int j = 0; j < m + r; ++j) {
          add(ActionKind::kBackwardInput, j);
          add(ActionKind::kBackwardWeight, j - r);
          add(ActionKind::kForward, j + p - r);
        }
      }
      ASSERT_EQ(make_zero_bubble_order(make_equal(p, m, p, kUnit)), expected) << p << " " << m;
    }
  }
}

TEST(ZeroBubbleOrder, HasNoBubbleInAnySpanAtUnitCostsWithTwiceTheMicroBatches) {
  const ReferenceTimes times = solve(make_equal(4, 8, 8, kUnit));
  EXPECT_EQ(times.span, 24);
  EXPECT_EQ(times.makespan, 27);  // with a barrier, no better than zb-1p
  EXPECT_EQ(solve(make_equal(4, 8, 4, kUnit)).makespan, 27);
}

// The lower bounds of the zero-bubble analysis (Qi et al. 2024) at equal stages, K >= 1.
struct Bounds {
  std::int64_t span = 0, makespan = 0;
};
Bounds find_equal_bounds(std::int64_t p, std::int64_t m, std::int64_t in_flight, const Costs& t) {
  Bounds bounds;
  for (std::int64_t s = 0; s < p; ++s) {
    const std::int64_t head = s * (t.f + t.c);
    const std::int64_t round_trip = (p - 1 - s) * (t.f + t.i + 2 * t.c);
    const std::int64_t warm = std::max<std::int64_t>(0, round_trip - (in_flight - 1) * t.f);
    const std::int64_t cool = std::max<std::int64_t>(0, round_trip - (in_flight - 1) * (t.i + t.w));
    const std::int64_t idle = m >= 2 * in_flight ? warm + cool : std::max(warm, cool);
    const std::int64_t filled =
        std::max<std::int64_t>(0, round_trip - (std::min(in_flight, m) - 1) * t.f);
    const std::int64_t last_input = head + m * (t.f + t.i) + filled + s * (t.i + t.c) + t.w;
    bounds.span = std::max({bounds.span, m * t.total() + idle, last_input});
    bounds.makespan = std::max({bounds.makespan, head + m * t.total() + idle, last_input});
  }
  return bounds;
}

TEST(ZeroBubbleOrder, MeetsTheZbH1FormulasWhereABoundSaysThatTheyAreOptimal) {
  constexpr std::uint64_t kSeed = 20240110;
  Random random(kSeed);
  int optimal_spans = 0, optimal_makespans = 0;
  for (int draws = 0; draws < 1500; ++draws) {
    const std::int64_t longest = draw(random, 0, 1) == 0 ? 10 : 1000;
    const Costs t{draw(random, 1, longest), draw(random, 1, longest), draw(random, 1, longest), 0};
    const std::int64_t p = draw(random, 2, 9);
    const std::int64_t m = draw(random, p, 4 * p);
    SCOPED_TRACE(
        fmt::format("seed {} draw {}: p={} m={} {}/{}/{}", kSeed, draws, p, m, t.f, t.i, t.w));
    const std::int64_t span = m * t.total() + (p - 1) * std::max(t.i, t.f + t.i - t.w);
    const std::int64_t makespan = m * t.total() + (p - 1) * std::max({t.f, t.i, t.f + t.i - t.w});
    const ReferenceTimes found =
        solve(make_equal(static_cast<int>(p), static_cast<int>(m), static_cast<int>(p), t));
    const Bounds bounds = find_equal_bounds(p, m, p, t);
    ASSERT_LE(found.span, span);
    ASSERT_GE(found.span, bounds.span);
    ASSERT_GE(found.makespan, bounds.makespan);
    if (bounds.span == span) {
      ++optimal_spans;
      ASSERT_EQ(found.span, span);
      ASSERT_LE(found.makespan, makespan);
      if (bounds.makespan == makespan) {
        ++optimal_makespans;
        ASSERT_EQ(found.makespan, makespan);
      }
    }
  }
  EXPECT_GE(optimal_spans, 500);
  EXPECT_GE(optimal_makespans, 500);
}

// A bubble by span that the zero-bubble authors' own scheduler reaches, as printed: `units` of 1 /
// `per_percent` of a percent.
struct Printed {
  std::int64_t units, per_percent;
};
struct Measured {
  int p, m;
  Costs costs;
  Printed zb_1p, zb_2p;
};
constexpr Costs kGpt{1855, 1807, 928, 31};
const std::vector<Measured> kMeasured{
    {4, 8, kUnit, {111, 10}, {0, 1}},
    {8, 16, kUnit, {127, 10}, {0, 1}},
    {8, 32, kUnit, {68, 10}, {0, 1}},
    {32, 64, kUnit, {139, 10}, {0, 1}},
    {4, 8, kGpt, {189, 10}, {113, 10}},
    {8, 16, kGpt, {214, 10}, {142, 10}},
    {8, 32, kGpt, {120, 10}, {7, 100}},
    {32, 64, kGpt, {232, 10}, {162, 10}},
    {8, 24, {1859, 1806, 934, 36}, {154, 10}, {41, 10}},
    {32, 256, {1038, 1024, 770, 46}, {59, 10}, {19, 100}},
};

// True if 1 - mT / span rounds to no more than the printed bubble; a printed 0 means exactly 0.
bool rounds_to_at_most(const Printed& printed, const Measured& x, std::int64_t span) {
  const std::int64_t idle = span - x.m * x.costs.total();
  if (printed.units == 0) return idle == 0;
  return 200 * printed.per_percent * idle < (2 * printed.units + 1) * span;
}

TEST(ZeroBubbleOrder, HasNoMoreBubblesThanThePublishedSchedulerUnderItsAccounting) {
  for (const Measured& x : kMeasured) {
    for (const int times_p : {1, 2}) {
      const OrderProblem problem = make_equal(x.p, x.m, times_p * x.p, x.costs);
      const std::int64_t span = solve(problem, Release::kHalfAtInput).span;
      EXPECT_TRUE(rounds_to_at_most(times_p == 1 ? x.zb_1p : x.zb_2p, x, span))
          << describe(problem) << ": span " << span;
    }
  }
}

// If everything is held until W, m - K of the W on the last stage come before its last F, and its
// last I then goes all the way up. Where this way alone makes more bubbles than are printed, its
// length is the span.
TEST(ZeroBubbleOrder, HasNoMoreBubblesThanHoldingEverythingUntilWForces) {
  int forced = 0;
  for (const Measured& x : kMeasured) {
    for (const int times_p : {1, 2}) {
      const OrderProblem problem = make_equal(x.p, x.m, times_p * x.p, x.costs);
      const Costs& t = x.costs;
      const std::int64_t last_way = (x.p - 1) * (t.f + t.i + 2 * t.c) + x.m * (t.f + t.i) +
                                    std::max(0, x.m - times_p * x.p) * t.w + t.w;
      const std::int64_t longest_way = std::max(last_way, x.m * t.total());
      const Printed& printed = times_p == 1 ? x.zb_1p : x.zb_2p;
      const std::int64_t span = solve(problem).span;
      if (rounds_to_at_most(printed, x, longest_way)) {
        EXPECT_TRUE(rounds_to_at_most(printed, x, span)) << describe(problem) << ": span " << span;
      } else {
        EXPECT_EQ(span, longest_way) << describe(problem);
        ++forced;
      }
    }
  }
  EXPECT_EQ(forced, 3);  // zb-2p on times with W < F and more than 2p micro-batches
}

OrderProblem make_unequal(int m, int in_flight, std::int64_t hop,
                          const std::vector<std::int64_t>& forward,
                          const std::vector<std::int64_t>& input,
                          const std::vector<std::int64_t>& weight) {
  OrderProblem problem;
  problem.devices = static_cast<int>(forward.size());
  problem.micro_batches = m;
  problem.in_flight = in_flight;
  problem.hop = Duration{hop};
  for (std::size_t s = 0; s < forward.size(); ++s) {
    problem.times.push_back({Duration{forward[s]}, Duration{input[s]}, Duration{weight[s]}});
  }
  return problem;
}

TEST(ZeroBubbleOrder, TakesTheShorterMakespanAmongEqualSpansThenTheClosedForm) {
  const OrderProblem longer = make_unequal(4, 4, 0, {3, 1}, {1, 1}, {1, 2});
  const DeviceOrders closed = make_split_linear_order(longer, 4);
  EXPECT_EQ(time_orders(closed, longer, Placement::kLinear).span, 20);
  EXPECT_EQ(time_orders(closed, longer, Placement::kLinear).makespan, 22);
  EXPECT_EQ(solve(longer).span, 20);
  EXPECT_EQ(solve(longer).makespan, 20);

  const OrderProblem equal = make_unequal(4, 4, 0, {3, 2, 2}, {3, 3, 2}, {1, 1, 3});
  EXPECT_EQ(make_zero_bubble_order(equal), make_split_linear_order(equal, 4));
}

// The spans and makespans are those that 18 s of local search found for each alone.
TEST(ZeroBubbleOrder, IsAsGoodAsLocalSearchOnUnequalStages) {
  const std::vector<std::int64_t> heavy_forward{30715, 29233, 29106, 29078,
                                                28850, 28919, 28924, 41678};
  const std::vector<std::int64_t> heavy_input{31308, 29344, 29357, 29455,
                                              29217, 29384, 29354, 38731};
  const std::vector<std::int64_t> heavy_weight{18746, 18789, 19062, 19367,
                                               19455, 19967, 20096, 32833};
  const std::vector<std::int64_t> tiers{1000, 1000, 1000, 1000, 2000, 2000, 2000, 2000};
  const std::vector<std::int64_t> tiers_weight{500, 500, 500, 500, 1000, 1000, 1000, 1000};
  const std::vector<std::int64_t> equal(8, 1000);
  const auto expect = [](const OrderProblem& problem, std::int64_t span, std::int64_t makespan) {
    SCOPED_TRACE(describe(problem));
    const ReferenceTimes times = solve(problem, Release::kHalfAtInput);
    EXPECT_EQ(times.span, span);
    EXPECT_EQ(times.makespan, makespan);
  };
  const auto heavy_last = [&](int in_flight) {
    return make_unequal(32, in_flight, 473, heavy_forward, heavy_input, heavy_weight);
  };
  expect(heavy_last(8), 3'623'744, 3'831'880);
  expect(heavy_last(16), 3'623'744, 3'831'880);
  expect(make_unequal(16, 8, 31, tiers, tiers, tiers_weight), 85'934, 90'217);
  expect(make_unequal(16, 8, 500, equal, equal, equal), 69'000, 69'000);
  expect(make_unequal(16, 16, 500, equal, equal, equal), 54'000, 58'500);
}

TEST(ZeroBubbleOrder, IsCompleteAndWithinTheLimitForAnyStages) {
  constexpr std::uint64_t kSeed = 1729;
  Random random(kSeed);
  for (int i = 0; i < 1500; ++i) {
    const OrderProblem problem = draw_problem(random, 8, 20);
    SCOPED_TRACE(fmt::format("seed {} draw {}: {}", kSeed, i, describe(problem)));
    ReferenceTimes all_at_weight, half_at_input;
    ASSERT_NO_THROW(all_at_weight = solve(problem));
    ASSERT_NO_THROW(half_at_input = solve(problem, Release::kHalfAtInput));
    // The closed forms hold at most K under both accountings.
    for (const int held : {*problem.in_flight, std::max(1, *problem.in_flight - 1)}) {
      const DeviceOrders closed = make_split_linear_order(with_in_flight(problem, held), held);
      const std::int64_t span = time_orders(closed, problem, Placement::kLinear).span;
      ASSERT_LE(all_at_weight.span, span);
      ASSERT_LE(half_at_input.span, span);
    }
    ASSERT_EQ(make_zero_bubble_order(problem), make_zero_bubble_order(problem));
    if (HasFailure()) return;
  }
}

// Lists every order of a device with m F, m I and m W, each kind ascending, that keeps the limit.
std::vector<DeviceOrder> list_device_orders(const OrderProblem& problem, int stage,
                                            Release release) {
  const int at_input = release == Release::kHalfAtInput ? 1 : 0;
  const int m = problem.micro_batches;
  std::vector<DeviceOrder> lists;
  DeviceOrder list;
  const std::function<void(int, int, int)> extend = [&](int f, int i, int w) {
    const auto go_on = [&](bool legal, ActionKind kind, int next) {
      if (!legal) return;
      list.push_back({kind, false, 0, stage, next});
      extend(f + (kind == ActionKind::kForward), i + (kind == ActionKind::kBackwardInput),
             w + (kind == ActionKind::kBackwardWeight));
      list.pop_back();
    };
    if (w == m) lists.push_back(list);
    const int halves = 2 * f - at_input * i - (2 - at_input) * w;
    go_on(f < m && halves + 2 <= 2 * *problem.in_flight, ActionKind::kForward, f);
    go_on(i < f, ActionKind::kBackwardInput, i);
    go_on(w < i, ActionKind::kBackwardWeight, w);
  };
  extend(0, 0, 0);
  return lists;
}

std::int64_t find_shortest_span(const OrderProblem& problem, Release release) {
  std::vector<std::vector<DeviceOrder>> choices;
  for (int s = 0; s < problem.devices; ++s) {
    choices.push_back(list_device_orders(problem, s, release));
  }
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  DeviceOrders orders(choices.size());
  const std::function<void(std::size_t)> choose = [&](std::size_t s) {
    if (s == choices.size()) {
      try {
        shortest = std::min(shortest, time_orders(orders, problem, Placement::kLinear).span);
      } catch (const std::runtime_error&) {
        return;  // a deadlock
      }
      return;
    }
    for (const DeviceOrder& order : choices[s]) {
      orders[s] = order;
      choose(s + 1);
    }
  };
  choose(0);
  return shortest;
}

TEST(ZeroBubbleOrder, IsTheBestOfAllOrdersOnMostSmallPipelines) {
  constexpr std::uint64_t kSeed = 65537;
  constexpr int kDraws = 100;
  Random random(kSeed);
  int best = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int devices = draw(random, 2, 3);
    OrderProblem problem = draw_problem(random, devices, devices == 3 ? 2 : 3);
    problem.in_flight = draw(random, 1, 3);
    const Release release = i % 2 == 0 ? Release::kAllAtWeight : Release::kHalfAtInput;
    SCOPED_TRACE(fmt::format("seed {} draw {}: {}", kSeed, i, describe(problem)));
    const std::int64_t span = solve(problem, release).span;
    const std::int64_t shortest = find_shortest_span(problem, release);
    ASSERT_GE(span, shortest);
    best += span == shortest;
  }
  EXPECT_GE(best, 97);
}

TEST(ZeroBubbleOrder, NeedsTimesAndOneChunkPerDevice) {
  OrderProblem problem = make_equal(4, 8, 4, kUnit);
  problem.times.clear();
  EXPECT_THROW(make_zero_bubble_order(problem), InfeasibleError);
  OrderProblem chunks = make_unit_problem(4, 2, 8);
  chunks.in_flight = 4;
  EXPECT_THROW(make_zero_bubble_order(chunks), InfeasibleError);
}

}  // namespace
}  // namespace frazil
