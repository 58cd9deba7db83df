#include "planner/orders/zero_bubble_v_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/orders/wave_orders.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

const StageTimes kUnitShares = make_times(1'000'000, 1'000'000, 1'000'000);
const StageTimes kGptShares = make_times(1'855'000, 1'807'000, 928'000);
constexpr Duration kGptHop{31'000};

ReferenceTimes time_wave(OrderGenerator make, const OrderProblem& problem) {
  return time_orders(make(problem), problem, Placement::kWave);
}

// Makes the order and checks that it is complete, takes micro-batches in turn, does not deadlock
// and holds p micro-batches at most.
ReferenceTimes solve_wave(const OrderProblem& problem) {
  const DeviceOrders orders = make_zb_v_auto_order(problem);
  EXPECT_EQ(find_out_of_turn(orders), "");
  const ReferenceTimes times = time_orders(orders, problem, Placement::kWave);
  EXPECT_LE(most(times.peak_chunks), 2 * problem.devices);
  return times;
}

OrderProblem draw_wave(Random& random) {
  OrderProblem problem = make_bare_problem(draw(random, 1, 8), 2, 1);
  problem.micro_batches = draw(random, 1, 3 * problem.devices + 2);
  problem.hop = Duration{draw(random, 0, 1) * draw(random, 0, 20)};
  const std::int64_t least = draw(random, 0, 30);
  const bool is_equal = draw(random, 0, 1) == 0;
  for (int s = 0; s < problem.stages(); ++s) {
    const auto time = [&] { return draw(random, least, 30); };
    problem.times.push_back(is_equal && s > 0 ? problem.times.front()
                                              : make_times(time(), time(), time()));
  }
  return problem;
}

// The pictures were made by a model of the authors' rules in Python.
TEST(ZeroBubbleVOrder, RunsBackwardsBeforeTheirWeightsWhereMicroBatchesAreFew) {
  EXPECT_EQ(draw_orders(make_zb_v_auto_order(make_unit_problem(3, 2, 3))),
            "d0: 0F0 0F1 0F2 5F0 5I0 5F1 5I1 5F2 5I2 0I0 5W0 0I1 5W1 0I2 5W2 0W0 0W1 0W2\n"
            "d1: 1F0 1F1 1F2 4F0 4F1 4I0 4F2 4I1 1I0 4I2 1I1 4W0 1I2 4W1 1W0 4W2 1W1 1W2\n"
            "d2: 2F0 3F0 2F1 3F1 2F2 3F2 3I0 2I0 3I1 2I1 3I2 2I2 3W0 2W0 3W1 2W1 3W2 2W2\n");
}

TEST(ZeroBubbleVOrder, PutsWIntoWaitsThatAreLongEnough) {
  EXPECT_EQ(draw_orders(make_zb_v_auto_order(make_order_problem(3, 2, 3, make_times(4, 4, 2)))),
            "d0: 0F0 0F1 0F2 5F0 5I0 5F1 5I1 5F2 5I2 0I0 5W0 5W1 0I1 5W2 0W0 0I2 0W1 0W2\n"
            "d1: 1F0 1F1 1F2 4F0 4F1 4I0 4F2 4I1 1I0 4I2 1I1 4W0 4W1 1I2 1W0 4W2 1W1 1W2\n"
            "d2: 2F0 3F0 2F1 3F1 2F2 3F2 3I0 2I0 3I1 2I1 3I2 2I2 3W0 2W0 3W1 2W1 3W2 2W2\n");
}

// The bubbles by span that the authors' own scheduler reaches, as printed.
TEST(ZeroBubbleVOrder, HasTheBubblesOfItsAuthorsScheduler) {
  struct Published {
    int p, m;
    StageTimes shares;
    Duration hop;
    std::string bubble;
  };
  const std::vector<Published> all{
      {4, 8, kUnitShares, Duration{0}, "0.0"},
      {8, 16, kUnitShares, Duration{0}, "0.0"},
      {8, 32, kUnitShares, Duration{0}, "0.0"},
      {32, 64, kUnitShares, Duration{0}, "0.0"},
      {4, 8, kGptShares, kGptHop, "7.1"},
      {8, 16, kGptShares, kGptHop, "8.9"},
      {8, 32, kGptShares, kGptHop, "4.6"},
      {32, 64, kGptShares, kGptHop, "10.2"},
      {8, 24, make_times(1'859'000, 1'806'000, 934'000), Duration{36'000}, "6.2"},
      {32, 256, make_times(1'038'000, 1'024'000, 770'000), Duration{46'000}, "2.2"},
  };
  for (const auto& [p, m, shares, hop, bubble] : all) {
    const OrderProblem problem = make_order_problem(p, 2, m, shares, hop);
    SCOPED_TRACE(fmt::format("p={} m={} c={}", p, m, hop.count()));
    EXPECT_EQ(idle_percent(solve_wave(problem).span, m * shares.total()), bubble);
  }
}

// With m = p the fixed order is the one of 2p-1 micro-batches with half of them taken out.
TEST(ZeroBubbleVOrder, IsFarShorterThanZbVWithAsManyMicroBatchesAsDevices) {
  const auto saved = [](int p) {
    const OrderProblem problem = make_order_problem(p, 2, p, kGptShares, kGptHop);
    const std::int64_t fixed = time_wave(make_zb_v_order, problem).span;
    return fmt::format("{:.1f}", 100.0 * static_cast<double>(fixed - solve_wave(problem).span) /
                                     static_cast<double>(fixed));
  };
  EXPECT_EQ(saved(2), "8.3");
  EXPECT_EQ(saved(4), "11.2");
  EXPECT_EQ(saved(8), "12.4");
  EXPECT_EQ(saved(16), "12.8");
}

TEST(ZeroBubbleVOrder, IsNeverLongerThanZbVOnAGridOfEqualDevices) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 3 * p + 2; ++m) {
      for (const StageTimes& shares :
           {make_times(2, 2, 2), make_times(4, 4, 2), make_times(2, 2, 4), make_times(6, 4, 2),
            make_times(4, 2, 6), make_times(4, 0, 0), make_times(0, 4, 0), make_times(0, 0, 4)}) {
        for (const int hop : {0, 1, 7}) {
          const OrderProblem problem = make_order_problem(p, 2, m, shares, Duration{hop});
          SCOPED_TRACE(describe(problem));
          ASSERT_LE(solve_wave(problem).span, time_wave(make_zb_v_order, problem).span);
        }
      }
    }
  }
}

TEST(ZeroBubbleVOrder, IsCompleteAndNeverLongerThanZbVForAnyStages) {
  constexpr std::uint64_t kSeed = 20'240'110;
  Random random(kSeed);
  int shorter = 0;
  for (int i = 0; i < 2000; ++i) {
    const OrderProblem problem = draw_wave(random);
    SCOPED_TRACE(fmt::format("seed {} draw {}: {}", kSeed, i, describe(problem)));
    const ReferenceTimes fixed = time_wave(make_zb_v_order, problem);
    const ReferenceTimes times = solve_wave(problem);
    ASSERT_LE(times.span, fixed.span);
    ASSERT_TRUE(times.span < fixed.span || times.makespan <= fixed.makespan);
    shorter += times.span < fixed.span ? 1 : 0;
    ASSERT_EQ(make_zb_v_auto_order(problem), make_zb_v_auto_order(problem));
    if (HasFailure()) return;
  }
  EXPECT_GT(shorter, 1000);
}

TEST(ZeroBubbleVOrder, IsZbVWhereThatWaitsForNothing) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p - 1; m <= 3 * p + 2; ++m) {
      const OrderProblem problem = make_unit_problem(p, 2, m);
      EXPECT_EQ(make_zb_v_auto_order(problem), make_zb_v_order(problem)) << describe(problem);
    }
  }
}

TEST(ZeroBubbleVOrder, NeedsTimesAndRefusesWhatZbVIsNot) {
  const auto refused = [](const OrderProblem& problem) {
    return refusal(make_zb_v_auto_order, problem);
  };
  EXPECT_EQ(refused(make_bare_problem(4, 2, 8)),
            "zb-v-auto decides by cost and needs the times of the stages");
  EXPECT_EQ(refused(make_unit_problem(4, 3, 8)), "zb-v-auto has 2 chunks per device, not 3");
  OrderProblem problem = make_unit_problem(4, 2, 8);
  problem.in_flight = 5;
  EXPECT_EQ(refused(problem),
            "zb-v-auto holds as many micro-batches as there are devices, 4; in-flight 5 is not "
            "defined for it");
  problem = make_unit_problem(4, 2, 8);
  problem.times.front().forward = kFarAway / 16;
  EXPECT_EQ(refused(problem), "the times of this pipeline add up past 2^57 ns, too long to order");
  EXPECT_EQ(refused(make_unit_problem(4, 2, 1)), "made");
}

}  // namespace
}  // namespace frazil
