#include "planner/orders/dualpipe_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

ReferenceTimes time_dualpipe_v(int devices, int micro_batches, StageTimes device_share,
                               Duration hop = Duration{0}) {
  const OrderProblem problem = make_order_problem(devices, 2, micro_batches, device_share, hop);
  return time_orders(make_dualpipe_v_order(problem), problem, Placement::kWave);
}

ReferenceTimes time_dualpipe(int devices, int micro_batches, StageTimes device_share,
                             Duration hop = Duration{0}) {
  const OrderProblem problem = make_order_problem(devices, 1, micro_batches, device_share, hop);
  return time_orders(make_dualpipe_order(problem), problem, Placement::kBothWays);
}

// The form is m T + (p-1) (FB + B - 3W) over chunks of half a device's share, with FB = T and B =
// tB + tW.
std::int64_t dualpipe_v_formula(int p, int m, const StageTimes& t) {
  const Duration bubble = t.total() + t.backward_input + t.backward_weight - 3 * t.backward_weight;
  return (m * t.total() + (p - 1) * bubble / 2).count();
}

// The form is m T + (p/2-1) (FB + B - 3W).
std::int64_t dualpipe_formula(int p, int m, const StageTimes& t) {
  const Duration bubble = t.total() + t.backward_input + t.backward_weight - 3 * t.backward_weight;
  return (m * t.total() + (p / 2 - 1) * bubble).count();
}

bool is_backward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

// Checks that every stage of each direction takes the micro-batches 0, 1, .., `micro_batches` - 1
// in this order, forwards and backwards, and that a W is the oldest that its device owes.
void expect_in_order(const DeviceOrders& orders, int micro_batches) {
  std::map<std::tuple<int, int, bool>, int> done;  // by direction, stage, whether backward
  for (const DeviceOrder& order : orders) {
    std::vector<OrderedWork> owed;
    for (const OrderedWork& work : order) {
      if (work.kind == ActionKind::kBackwardInput) owed.push_back(work);
      if (work.kind == ActionKind::kBackwardWeight) {
        ASSERT_FALSE(owed.empty());
        OrderedWork oldest = owed.front();
        oldest.kind = ActionKind::kBackwardWeight;
        ASSERT_EQ(work, oldest);
        owed.erase(owed.begin());
      } else {
        int& next = done[{work.direction, work.stage, is_backward(work.kind)}];
        ASSERT_EQ(work.micro_batch, next++);
      }
    }
    EXPECT_TRUE(owed.empty());
  }
  for (const auto& [list, count] : done) EXPECT_EQ(count, micro_batches);
}

// Checks that an F that overlaps is followed by the backward of the device's other chunk.
void expect_pairs_of_two_chunks(const DeviceOrders& orders) {
  for (const DeviceOrder& order : orders) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (!order[i].overlaps_next) continue;
      ASSERT_EQ(order[i].kind, ActionKind::kForward);
      ASSERT_LT(i + 1, order.size());
      ASSERT_TRUE(is_backward(order[i + 1].kind));
      ASSERT_NE(order[i + 1].stage, order[i].stage);
    }
  }
}

TEST(DualPipeOrders, DualPipeVOverlapsForwardsOfOneChunkWithBackwardsOfTheOther) {
  EXPECT_EQ(draw_orders(make_dualpipe_v_order(make_bare_problem(4, 2, 8))),
            "d0: 0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 "
            "(0F7;7B3) (7F4;0B0) 7B4 (7F5;0B1) 7B5 (7F6;0B2) 7B6 (7F7;0B3) 7B7 "
            "0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7\n"
            "d1: 1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6I0 6W0 6F2 6I1 6W1 6F3 "
            "(1F6;6B2) (6F4;1B0) (1F7;6B3) (6F5;1B1) 6B4 (6F6;1B2) 6B5 (6F7;1B3) "
            "6B6 1B4 6I7 1I5 6W7 1I6 1W5 1I7 1W6 1W7\n"
            "d2: 2F0 2F1 2F2 5F0 2F3 5F1 2F4 5F2 5I0 5W0 5F3 "
            "(2F5;5B1) (5F4;2B0) (2F6;5B2) (5F5;2B1) (2F7;5B3) (5F6;2B2) 5B4 (5F7;2B3) "
            "5B5 2B4 5B6 2I5 5I7 2I6 2W5 2I7 5W7 2W6 2W7\n"
            "d3: 3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 3F4 4B0 (4F4;3B0) (3F5;4B1) (4F5;3B1) "
            "(3F6;4B2) (4F6;3B2) (3F7;4B3) (4F7;3B3) 4B4 3B4 4B5 3B5 4I6 3I6 4I7 3I7 "
            "4W6 3W6 4W7 3W7\n");
}

TEST(DualPipeOrders, DualPipeRunsBothWaysAtOnce) {
  EXPECT_EQ(draw_orders(make_dualpipe_order(make_bare_problem(4, 1, 8))),
            "d0: 0F0 0F1 0F2 '3F0 '3I0 '3W0 '3F1 (0F3;'3B1) ('3F2;0B0) '3B2 ('3F3;0B1) '3B3 "
            "0I2 0W2 0I3 0W3\n"
            "d1: 1F0 '2F0 1F1 '2F1 1F2 '2B0 ('2F2;1B0) (1F3;'2B1) ('2F3;1B1) '2B2 1B2 "
            "'2I3 1I3 '2W3 1W3\n"
            "d2: '1F0 2F0 '1F1 2F1 '1F2 2B0 (2F2;'1B0) ('1F3;2B1) (2F3;'1B1) 2B2 '1B2 "
            "2I3 '1I3 2W3 '1W3\n"
            "d3: '0F0 '0F1 '0F2 3F0 3I0 3W0 3F1 ('0F3;3B1) (3F2;'0B0) 3B2 (3F3;'0B1) 3B3 "
            "'0I2 '0W2 '0I3 '0W3\n");
}

TEST(DualPipeOrders, TheSmallestOfEach) {
  EXPECT_EQ(draw_orders(make_dualpipe_v_order(make_bare_problem(1, 2, 2))),
            "d0: 0F0 1F0 0F1 1B0 (1F1;0B0) 1B1 0I1 0W1\n");
  EXPECT_EQ(draw_orders(make_dualpipe_order(make_bare_problem(2, 1, 4))),
            "d0: 0F0 '1F0 0F1 '1B0 ('1F1;0B0) '1B1 0I1 0W1\n"
            "d1: '0F0 1F0 '0F1 1B0 (1F1;'0B0) 1B1 '0I1 '0W1\n");
}

TEST(DualPipeOrders, DualPipeIsItsOwnMirrorImage) {
  const DeviceOrders orders = make_dualpipe_order(make_bare_problem(8, 1, 20));
  for (std::size_t device = 0; device < orders.size(); ++device) {
    DeviceOrder mirrored = orders[orders.size() - 1 - device];
    for (OrderedWork& work : mirrored) {
      work.direction = static_cast<std::int16_t>(1 - work.direction);
    }
    EXPECT_EQ(orders[device], mirrored) << "device " << device;
  }
}

TEST(DualPipeOrders, DualPipeVIsCompleteInOrderFreeOfDeadlockAndHolds2PPlus1Chunks) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 2 * p; m <= 3 * p + 5; ++m) {
      SCOPED_TRACE(fmt::format("p = {}, m = {}", p, m));
      const OrderProblem problem = make_order_problem(p, 2, m, make_times(2, 2, 2));
      const DeviceOrders orders = make_dualpipe_v_order(problem);
      expect_in_order(orders, m);
      expect_pairs_of_two_chunks(orders);
      const ReferenceTimes times = time_orders(orders, problem, Placement::kWave);
      EXPECT_EQ(times.peak_chunks, std::vector<int>(static_cast<std::size_t>(p), 2 * p + 1));
      EXPECT_EQ(most(times.peak_half_chunks), 2 * (2 * p + 1));
    }
  }
}

TEST(DualPipeOrders, DualPipeIsCompleteInOrderFreeOfDeadlockAndHoldsPPlus1Chunks) {
  for (int p = 2; p <= 10; p += 2) {
    for (int m = 2 * p; m <= 3 * p + 6; m += 2) {
      SCOPED_TRACE(fmt::format("p = {}, m = {}", p, m));
      const OrderProblem problem = make_order_problem(p, 1, m, make_times(2, 2, 2));
      const DeviceOrders orders = make_dualpipe_order(problem);
      expect_in_order(orders, m / 2);
      expect_pairs_of_two_chunks(orders);
      const ReferenceTimes times = time_orders(orders, problem, Placement::kBothWays);
      EXPECT_EQ(times.peak_chunks, std::vector<int>(static_cast<std::size_t>(p), p + 1));
      EXPECT_EQ(most(times.peak_half_chunks), 2 * (p + 1));
    }
  }
}

TEST(DualPipeOrders, UnitCostsGiveThePublishedTimes) {
  const StageTimes unit{milliseconds{1}, milliseconds{1}, milliseconds{1}};
  const ReferenceTimes v_shaped = time_dualpipe_v(4, 8, unit);
  EXPECT_EQ(v_shaped.makespan, 27'000'000);
  EXPECT_EQ(v_shaped.span, 27'000'000);
  const ReferenceTimes both_ways = time_dualpipe(4, 8, unit);
  EXPECT_EQ(both_ways.makespan, 26'000'000);
  EXPECT_EQ(both_ways.span, 26'000'000);
}

TEST(DualPipeOrders, BubblesFollowTheFormulaAtRandomCosts) {
  constexpr std::uint64_t kSeed = 20'241'226;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  Random random(kSeed);
  for (int round = 0; round < 600; ++round) {
    const int half = draw(random, 1, 100);
    const StageTimes times = make_times(2 * half, 2 * half, 2 * draw(random, 0, half));
    const int p = draw(random, 1, 8);
    const int m = draw(random, 2 * p, 3 * p + 8);
    const int even_p = 2 * draw(random, 1, 4);
    const int even_m = 2 * draw(random, even_p, 2 * even_p + 4);
    SCOPED_TRACE(fmt::format("p = {}, m = {}; p = {}, m = {}; {} {}", p, m, even_p, even_m,
                             2 * half, times.backward_weight.count()));
    const ReferenceTimes v_shaped = time_dualpipe_v(p, m, times);
    ASSERT_EQ(v_shaped.makespan, dualpipe_v_formula(p, m, times));
    ASSERT_EQ(v_shaped.span, dualpipe_v_formula(p, m, times));
    const ReferenceTimes both_ways = time_dualpipe(even_p, even_m, times);
    ASSERT_EQ(both_ways.makespan, dualpipe_formula(even_p, even_m, times));
    ASSERT_EQ(both_ways.span, dualpipe_formula(even_p, even_m, times));
  }
}

TEST(DualPipeOrders, EachConditionOfTheFormulaIsNeeded) {
  struct Case {
    StageTimes times;
    int v_formula, v_found, formula, found;
  };
  const std::vector<Case> cases{
      {make_times(4, 2, 2), 73, 76, 70, 72},  // tF > tB
      {make_times(2, 4, 2), 76, 75, 72, 70},  // tF < tB
      {make_times(2, 2, 4), 67, 70, 66, 68},  // tW > tF
  };
  for (const Case& each : cases) {
    EXPECT_EQ(dualpipe_v_formula(4, 8, each.times), each.v_formula);
    EXPECT_EQ(time_dualpipe_v(4, 8, each.times).span, each.v_found);
    EXPECT_EQ(time_dualpipe_v(4, 8, each.times).makespan, each.v_found);
    EXPECT_EQ(dualpipe_formula(4, 8, each.times), each.formula);
    EXPECT_EQ(time_dualpipe(4, 8, each.times).span, each.found);
    EXPECT_EQ(time_dualpipe(4, 8, each.times).makespan, each.found);
  }
  // Hops (c > 0) put both spans above the forms.
  EXPECT_EQ(dualpipe_v_formula(4, 8, make_times(10, 10, 10)), 270);
  EXPECT_EQ(time_dualpipe_v(4, 8, make_times(10, 10, 10), Duration{1}).span, 287);
  EXPECT_EQ(dualpipe_formula(4, 8, make_times(10, 10, 10)), 260);
  EXPECT_EQ(time_dualpipe(4, 8, make_times(10, 10, 10), Duration{1}).span, 269);
}

TEST(DualPipeOrders, OutsideItsConditionsTheFormulaMayStillHold) {
  EXPECT_EQ(dualpipe_formula(4, 8, make_times(2, 4, 6)), 100);
  EXPECT_EQ(time_dualpipe(4, 8, make_times(2, 4, 6)).span, 100);
  EXPECT_EQ(dualpipe_v_formula(2, 4, make_times(2, 4, 6)), 50);
  EXPECT_EQ(time_dualpipe_v(2, 4, make_times(2, 4, 6)).span, 50);
}

TEST(DualPipeOrders, BothHaveTheirFiguresOverEightDevices) {
  const StageTimes unit{milliseconds{1}, milliseconds{1}, milliseconds{1}};
  const StageTimes gpt{milliseconds{1855}, milliseconds{1807}, milliseconds{928}};
  const auto bubbles = [](const ReferenceTimes& found, const StageTimes& times) {
    const Duration work = 32 * times.total();
    return idle_percent(found.makespan, work) + " " + idle_percent(found.span, work);
  };
  EXPECT_EQ(bubbles(time_dualpipe_v(8, 32, unit), unit), "6.8 6.8");
  EXPECT_EQ(bubbles(time_dualpipe_v(8, 32, gpt, milliseconds{31}), gpt), "11.0 11.0");
  EXPECT_EQ(time_dualpipe_v(8, 32, unit).peak_chunks, std::vector<int>(8, 17));
  EXPECT_EQ(bubbles(time_dualpipe(8, 32, unit), unit), "5.9 5.9");
  EXPECT_EQ(bubbles(time_dualpipe(8, 32, gpt, milliseconds{31}), gpt), "9.2 9.2");
  EXPECT_EQ(time_dualpipe(8, 32, unit).peak_chunks, std::vector<int>(8, 9));
}

TEST(DualPipeOrders, UnmetConditionsAreRefusedInOneSentence) {
  EXPECT_EQ(refusal(make_dualpipe_v_order, make_bare_problem(4, 1, 8)),
            "dualpipev has 2 chunks per device, not 1");
  EXPECT_EQ(refusal(make_dualpipe_v_order, make_bare_problem(4, 2, 7)),
            "dualpipev over 4 devices takes at least 8 micro-batches, not 7");
  EXPECT_EQ(refusal(make_dualpipe_v_order, make_bare_problem(4, 2, 8)), "made");
  EXPECT_EQ(refusal(make_dualpipe_v_order, make_bare_problem(3, 2, 7)), "made");
  EXPECT_EQ(refusal(make_dualpipe_order, make_bare_problem(3, 1, 8)),
            "dualpipe takes an even number of devices, not 3");
  EXPECT_EQ(refusal(make_dualpipe_order, make_bare_problem(4, 1, 9)),
            "dualpipe takes an even number of micro-batches, not 9");
  EXPECT_EQ(refusal(make_dualpipe_order, make_bare_problem(4, 2, 8)),
            "dualpipe has 1 chunk per device and direction, not 2");
  EXPECT_EQ(refusal(make_dualpipe_order, make_bare_problem(4, 1, 6)),
            "dualpipe over 4 devices takes at least 8 micro-batches, not 6");
  OrderProblem problem = make_bare_problem(4, 1, 8);
  problem.in_flight = 3;
  EXPECT_EQ(
      refusal(make_dualpipe_order, problem),
      "dualpipe holds 5 chunks on each of 4 devices by its own rule; in-flight 3 is not defined "
      "for it");
}

}  // namespace
}  // namespace frazil
