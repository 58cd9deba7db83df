#include "planner/orders/wave_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

ReferenceTimes time_zb_v(int devices, int micro_batches, StageTimes device_share,
                         Duration hop = Duration{0}) {
  const OrderProblem problem = make_order_problem(devices, 2, micro_batches, device_share, hop);
  return time_orders(make_zb_v_order(problem), problem, Placement::kWave);
}

// The bound is m T + (p-1) max(0, max(tF, tB) - tW).
std::int64_t span_bound(int devices, int micro_batches, const StageTimes& times) {
  const Duration longer = std::max(times.forward, times.backward_input);
  const Duration wait = std::max(Duration{0}, longer - times.backward_weight);
  return (micro_batches * times.total() + (devices - 1) * wait).count();
}

TEST(WaveOrders, ZbVTurnsRoundOnTheLastDevice) {
  EXPECT_EQ(draw_orders(make_zb_v_order(make_bare_problem(4, 2, 8))),
            "d0: 0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 7I3 7W3 "
            "0F7 0I0 0W0 7F4 7I4 7W4 0I1 0W1 7F5 7I5 7W5 0I2 0W2 7F6 7I6 7W6 0I3 0W3 "
            "7F7 7I7 7W7 0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7\n"
            "d1: 1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6I0 6W0 6F2 6I1 6W1 6F3 6I2 6W2 1F6 1I0 1W0 "
            "6F4 6I3 6W3 1F7 1I1 1W1 6F5 6I4 6W4 1I2 1W2 6F6 6I5 6W5 1I3 1W3 6F7 6I6 6W6 "
            "1I4 6I7 1I5 1W4 1I6 1W5 1I7 1W6 6W7 1W7\n"
            "d2: 2F0 2F1 2F2 5F0 2F3 5F1 2F4 5F2 5I0 5W0 5F3 5I1 5W1 2F5 2I0 2W0 5F4 5I2 5W2 "
            "2F6 2I1 2W1 5F5 5I3 5W3 2F7 2I2 2W2 5F6 5I4 5W4 2I3 2W3 5F7 5I5 5W5 "
            "2I4 5I6 2I5 5I7 2I6 2W4 2I7 2W5 5W6 5W7 2W6 2W7\n"
            "d3: 3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4I0 4W0 3F4 3I0 3W0 4F4 4I1 4W1 "
            "3F5 3I1 3W1 4F5 4I2 4W2 3F6 3I2 3W2 4F6 4I3 4W3 3F7 3I3 3W3 4F7 4I4 4W4 "
            "3I4 4I5 3I5 4I6 3I6 4I7 3I7 3W4 4W5 4W6 4W7 3W5 3W6 3W7\n");
}

TEST(WaveOrders, ZbVWithFewMicroBatchesIsThatOf2PMinus1WithTheRestTakenOut) {
  EXPECT_EQ(draw_orders(make_zb_v_order(make_bare_problem(2, 2, 2))),
            "d0: 0F0 0F1 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 0I1 0W1\n"
            "d1: 1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1\n");
  for (int p = 1; p <= 9; ++p) {
    const DeviceOrders full = make_zb_v_order(make_bare_problem(p, 2, 2 * p - 1));
    for (int m = 1; m < 2 * p - 1; ++m) {
      DeviceOrders kept = full;
      for (DeviceOrder& order : kept) {
        std::erase_if(order, [&](const OrderedWork& work) { return work.micro_batch >= m; });
      }
      EXPECT_EQ(make_zb_v_order(make_bare_problem(p, 2, m)), kept) << "p = " << p << ", m = " << m;
    }
  }
}

TEST(WaveOrders, ZbVOnOneDeviceDoesBothChunksInTurn) {
  EXPECT_EQ(draw_orders(make_zb_v_order(make_bare_problem(1, 2, 2))),
            "d0: 0F0 1F0 1I0 1W0 0F1 0I0 0W0 1F1 1I1 1W1 0I1 0W1\n");
}

TEST(WaveOrders, ZbVTakesMicroBatchesInOrderAndNeverDeadlocks) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p + 2; ++m) {
      SCOPED_TRACE(fmt::format("p = {}, m = {}", p, m));
      const OrderProblem problem = make_order_problem(p, 2, m, make_times(2, 2, 2));
      const DeviceOrders orders = make_zb_v_order(problem);
      EXPECT_NO_THROW(time_orders(orders, problem, Placement::kWave));
      EXPECT_EQ(find_out_of_turn(orders), "");
      for (const DeviceOrder& order : orders) {
        for (const OrderedWork& work : order) {
          ASSERT_TRUE(work.kind == ActionKind::kForward ||
                      work.kind == ActionKind::kBackwardInput ||
                      work.kind == ActionKind::kBackwardWeight);
          ASSERT_FALSE(work.overlaps_next);
        }
      }
    }
  }
}

TEST(WaveOrders, ZbVHoldsAsManyMicroBatchesAsDevicesOnEveryDevice) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p + 2; ++m) {
      SCOPED_TRACE(fmt::format("p = {}, m = {}", p, m));
      const ReferenceTimes times = time_zb_v(p, m, make_times(2, 2, 2));
      for (const int chunks : times.peak_chunks) EXPECT_LE(chunks, 2 * p);
      if (m < 2 * p - 1) continue;
      EXPECT_EQ(times.peak_chunks, std::vector<int>(static_cast<std::size_t>(p), 2 * p));
      EXPECT_EQ(most(times.peak_half_chunks), 4 * p);
    }
  }
}

TEST(WaveOrders, ZbVAtUnitCostsIdlesOnlyBeforeItsFirstAndAfterItsLastWork) {
  const ReferenceTimes figure =
      time_zb_v(4, 8, {milliseconds{1}, milliseconds{1}, milliseconds{1}});
  EXPECT_EQ(figure.makespan, 25'500'000);
  EXPECT_EQ(figure.span, 24'000'000);
  for (int p = 1; p <= 9; ++p) {
    for (int m = 2 * p - 1; m <= 3 * p + 2; ++m) {
      const ReferenceTimes times = time_zb_v(p, m, make_times(2, 2, 2));
      EXPECT_EQ(times.makespan, 6 * m + (p - 1)) << "p = " << p << ", m = " << m;
      EXPECT_EQ(times.span, 6 * m) << "p = " << p << ", m = " << m;
    }
  }
}

TEST(WaveOrders, ZbVSpanKeepsItsBoundAtRandomCosts) {
  constexpr std::uint64_t kSeed = 20'240'528;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  Random random(kSeed);
  int tight = 0;
  for (int round = 0; round < 1000; ++round) {
    const int p = draw(random, 1, 8);
    const int m = draw(random, 2 * p - 1, 3 * p + 8);
    const int forward = 2 * draw(random, 1, 100);
    const int input = 2 * draw(random, 1, 100);
    const StageTimes times =
        make_times(forward, input, 2 * draw(random, 0, std::min(forward, input) / 2));
    const std::int64_t span = time_zb_v(p, m, times).span;
    ASSERT_LE(span, span_bound(p, m, times))
        << fmt::format("p = {}, m = {}, {} {} {}", p, m, times.forward.count(),
                       times.backward_input.count(), times.backward_weight.count());
    tight += span == span_bound(p, m, times) ? 1 : 0;
  }
  EXPECT_GT(tight, 500);
}

TEST(WaveOrders, ZbVBoundIsNotAlwaysReached) {
  EXPECT_EQ(span_bound(2, 3, make_times(6, 4, 2)), 40);
  EXPECT_EQ(time_zb_v(2, 3, make_times(6, 4, 2)).span, 39);
}

TEST(WaveOrders, EachConditionOfTheZbVBoundIsNeeded) {
  // The condition tW <= tF does not hold.
  EXPECT_EQ(span_bound(2, 3, make_times(2, 4, 4)), 30);
  EXPECT_EQ(time_zb_v(2, 3, make_times(2, 4, 4)).span, 31);
  // The condition tW <= tB does not hold.
  EXPECT_EQ(span_bound(2, 3, make_times(4, 2, 4)), 30);
  EXPECT_EQ(time_zb_v(2, 3, make_times(4, 2, 4)).span, 31);
  // The condition m >= 2p-1 does not hold; the makespan would be 90 + 9.
  EXPECT_EQ(span_bound(4, 5, make_times(6, 6, 6)), 90);
  EXPECT_EQ(time_zb_v(4, 5, make_times(6, 6, 6)).span, 102);
  EXPECT_EQ(time_zb_v(4, 5, make_times(6, 6, 6)).makespan, 102);
  // The condition c = 0 does not hold; without hops the span is 240 and the makespan 255.
  EXPECT_EQ(time_zb_v(4, 8, make_times(10, 10, 10), Duration{1}).span, 256);
  EXPECT_EQ(time_zb_v(4, 8, make_times(10, 10, 10), Duration{1}).makespan, 268);
}

TEST(WaveOrders, ZbVHasItsFiguresOverEightDevices) {
  const auto bubbles = [](StageTimes times, Duration hop) {
    const ReferenceTimes found = time_zb_v(8, 32, times, hop);
    const Duration work = 32 * times.total();
    return idle_percent(found.makespan, work) + " " + idle_percent(found.span, work);
  };
  EXPECT_EQ(bubbles({milliseconds{1}, milliseconds{1}, milliseconds{1}}, Duration{0}), "3.5 0.0");
  EXPECT_EQ(bubbles({milliseconds{1855}, milliseconds{1807}, milliseconds{928}}, milliseconds{31}),
            "4.9 4.9");
  EXPECT_EQ(time_zb_v(8, 32, make_times(2, 2, 2)).peak_chunks, std::vector<int>(8, 2 * 8));
}

TEST(WaveOrders, ZbVRefusesWhatItIsNot) {
  OrderProblem problem = make_bare_problem(4, 2, 8);
  problem.chunks = 3;
  EXPECT_EQ(refusal(make_zb_v_order, problem), "zb-v has 2 chunks per device, not 3");
  problem = make_bare_problem(4, 2, 8);
  problem.in_flight = 5;
  EXPECT_EQ(refusal(make_zb_v_order, problem),
            "zb-v holds as many micro-batches as there are devices, 4; in-flight 5 is not defined "
            "for it");
  EXPECT_EQ(refusal(make_zb_v_order, make_bare_problem(4, 2, 1)), "made");
}

}  // namespace
}  // namespace frazil
