#include "planner/orders/linear_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "planner/orders/looped_orders.h"
#include "tests/planner/support/linear_generators.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

OrderProblem sized(int devices, int micro_batches) {
  return make_unit_problem(devices, 1, micro_batches);
}

TEST(LinearOrders, GpipeDoesAllForwardsThenAllBackwards) {
  EXPECT_EQ(draw_orders(gpipe(sized(3, 4))),
            "d0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"
            "d1: 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3\n"
            "d2: 2F0 2F1 2F2 2F3 2B0 2B1 2B2 2B3\n");
  EXPECT_EQ(draw_orders(reverse_gpipe(sized(3, 4))),
            "d0: 0F0 0F1 0F2 0F3 0B3 0B2 0B1 0B0\n"
            "d1: 1F0 1F1 1F2 1F3 1B3 1B2 1B1 1B0\n"
            "d2: 2F0 2F1 2F2 2F3 2B3 2B2 2B1 2B0\n");
}

TEST(LinearOrders, OneForwardOneBackwardAlternatesAfterItsWarmUp) {
  EXPECT_EQ(draw_orders(one_forward_one_backward(sized(4, 8))),
            "d0: 0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7\n"
            "d1: 1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7\n"
            "d2: 2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7\n"
            "d3: 3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7\n");
}

TEST(LinearOrders, EagerWarmsUpTwiceAsDeep) {
  EXPECT_EQ(draw_orders(eager(sized(3, 6))),
            "d0: 0F0 0F1 0F2 0F3 0F4 0B0 0F5 0B1 0B2 0B3 0B4 0B5\n"
            "d1: 1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5\n"
            "d2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5\n");
}

TEST(LinearOrders, ZbH1LetsDeviceRWaitRBackwardsWithEachWeightGradient) {
  EXPECT_EQ(draw_orders(zb_h1(sized(4, 8))),
            "d0: 0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 "
            "0I6 0W6 0I7 0W7\n"
            "d1: 1F0 1F1 1F2 1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1F6 1I4 1W3 1F7 1I5 1W4 1I6 "
            "1W5 1I7 1W6 1W7\n"
            "d2: 2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 "
            "2I7 2W5 2W6 2W7\n"
            "d3: 3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3F6 3I6 3W3 3F7 3I7 "
            "3W4 3W5 3W6 3W7\n");
}

TEST(LinearOrders, ZbH2LetsDeviceRWaitTwiceRBackwards) {
  EXPECT_EQ(draw_orders(zb_h2(sized(4, 8))),
            "d0: 0F0 0F1 0F2 0F3 0F4 0F5 0F6 0I0 0W0 0F7 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5 "
            "0I6 0W6 0I7 0W7\n"
            "d1: 1F0 1F1 1F2 1F3 1F4 1I0 1F5 1I1 1F6 1I2 1W0 1F7 1I3 1W1 1I4 1W2 1I5 1W3 1I6 1W4 "
            "1I7 1W5 1W6 1W7\n"
            "d2: 2F0 2F1 2F2 2I0 2F3 2I1 2F4 2I2 2F5 2I3 2F6 2I4 2W0 2F7 2I5 2W1 2I6 2W2 2I7 2W3 "
            "2W4 2W5 2W6 2W7\n"
            "d3: 3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3F5 3I5 3F6 3I6 3W0 3F7 3I7 3W1 3W2 3W3 "
            "3W4 3W5 3W6 3W7\n");
}

TEST(LinearOrders, TwoBpPutsAllWeightGradientsLast) {
  EXPECT_EQ(draw_orders(make_two_bp_order(one_forward_one_backward(sized(4, 8)))),
            "d0: 0F0 0F1 0F2 0F3 0I0 0F4 0I1 0F5 0I2 0F6 0I3 0F7 0I4 0I5 0I6 0I7 0W0 0W1 0W2 0W3 "
            "0W4 0W5 0W6 0W7\n"
            "d1: 1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1F5 1I3 1F6 1I4 1F7 1I5 1I6 1I7 1W0 1W1 1W2 1W3 "
            "1W4 1W5 1W6 1W7\n"
            "d2: 2F0 2F1 2I0 2F2 2I1 2F3 2I2 2F4 2I3 2F5 2I4 2F6 2I5 2F7 2I6 2I7 2W0 2W1 2W2 2W3 "
            "2W4 2W5 2W6 2W7\n"
            "d3: 3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3F5 3I5 3F6 3I6 3F7 3I7 3W0 3W1 3W2 3W3 "
            "3W4 3W5 3W6 3W7\n");
  EXPECT_EQ(draw_orders(make_two_bp_order(reverse_gpipe(sized(2, 3)))),
            "d0: 0F0 0F1 0F2 0I2 0I1 0I0 0W2 0W1 0W0\n"
            "d1: 1F0 1F1 1F2 1I2 1I1 1I0 1W2 1W1 1W0\n");
}

TEST(LinearOrders, PipeDreamUpdatesAfterEveryBackward) {
  EXPECT_EQ(draw_orders(make_pipedream_order(sized(3, 4), 1)),
            "d0: 0F0 0F1 0F2 0B0 0U 0F3 0B1 0U 0B2 0U 0B3 0U\n"
            "d1: 1F0 1F1 1B0 1U 1F2 1B1 1U 1F3 1B2 1U 1B3 1U\n"
            "d2: 2F0 2B0 2U 2F1 2B1 2U 2F2 2B2 2U 2F3 2B3 2U\n");
}

TEST(LinearOrders, PipeDream2BwUpdatesAfterAnIntervalAndAfterTheRest) {
  EXPECT_EQ(draw_orders(make_pipedream_order(sized(3, 8), 3)),
            "d0: 0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0U 0F5 0B3 0F6 0B4 0F7 0B5 0U 0B6 0B7 0U\n"
            "d1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1U 1F4 1B3 1F5 1B4 1F6 1B5 1U 1F7 1B6 1B7 1U\n"
            "d2: 2F0 2B0 2F1 2B1 2F2 2B2 2U 2F3 2B3 2F4 2B4 2F5 2B5 2U 2F6 2B6 2F7 2B7 2U\n");
}

TEST(LinearOrders, AnUpdateHasTheMicroBatchAndTheStageOfTheBackwardBeforeIt) {
  for (const int interval : {1, 2, 3, 8, 20}) {
    for (const DeviceOrder& order : make_pipedream_order(sized(4, 8), interval)) {
      int updates = 0;
      for (std::size_t i = 1; i < order.size(); ++i) {
        if (order[i].kind != ActionKind::kUpdate) continue;
        OrderedWork backward = order[i];
        backward.kind = ActionKind::kBackward;
        EXPECT_EQ(order[i - 1], backward);
        ++updates;
      }
      EXPECT_EQ(updates, (8 + interval - 1) / interval);
      EXPECT_EQ(order.back().kind, ActionKind::kUpdate);
    }
  }
}

TEST(LinearOrders, PipeDreamWithoutItsUpdatesIsOneForwardOneBackward) {
  OrderProblem problem = sized(4, 9);
  problem.in_flight = 6;
  DeviceOrders orders = make_pipedream_order(problem, 2);
  for (DeviceOrder& order : orders) {
    std::erase_if(order, [](const OrderedWork& work) { return work.kind == ActionKind::kUpdate; });
  }
  EXPECT_EQ(orders, one_forward_one_backward(problem));
}

TEST(LinearOrders, TwoBpIsTheLinearFamilyWithAnEndlessLag) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 9; ++m) {
      std::vector<DeviceRule> rules;
      for (int s = 0; s < p; ++s) rules.push_back({p - s, m});
      EXPECT_EQ(make_two_bp_order(one_forward_one_backward(sized(p, m))),
                make_looped_orders(sized(p, m), 1, rules));
    }
  }
}

TEST(LinearOrders, WarmUpFallsFromAllInFlightToOne) {
  const auto warm_ups = [](int in_flight, int devices) {
    std::vector<int> all;
    for (int s = 0; s < devices; ++s) all.push_back(warm_up(in_flight, devices, s));
    return all;
  };
  EXPECT_EQ(warm_ups(4, 4), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(warm_ups(7, 4), (std::vector<int>{7, 5, 3, 1}));
  EXPECT_EQ(warm_ups(8, 4), (std::vector<int>{8, 6, 4, 1}));
  EXPECT_EQ(warm_ups(5, 4), (std::vector<int>{5, 4, 3, 1}));
  EXPECT_EQ(warm_ups(2, 4), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(warm_ups(1, 4), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(warm_ups(3, 1), (std::vector<int>{3}));
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(warm_ups(most, 3), (std::vector<int>{most, 1 + most / 2, 1}));
  EXPECT_THROW(warm_up(0, 4, 0), std::logic_error);
  EXPECT_THROW(warm_up(4, 4, 4), std::logic_error);
}

TEST(LinearOrders, InFlightReplacesTheDefault) {
  OrderProblem problem = sized(3, 6);
  problem.in_flight = 5;
  EXPECT_EQ(one_forward_one_backward(problem), eager(sized(3, 6)));
  EXPECT_EQ(zb_h1(problem), zb_h2(sized(3, 6)));
  problem.in_flight = 1;
  EXPECT_EQ(draw_orders(zb_h2(problem)),
            "d0: 0F0 0I0 0W0 0F1 0I1 0W1 0F2 0I2 0W2 0F3 0I3 0W3 0F4 0I4 0W4 0F5 0I5 0W5\n"
            "d1: 1F0 1I0 1W0 1F1 1I1 1W1 1F2 1I2 1W2 1F3 1I3 1W3 1F4 1I4 1W4 1F5 1I5 1W5\n"
            "d2: 2F0 2I0 2W0 2F1 2I1 2W1 2F2 2I2 2W2 2F3 2I3 2W3 2F4 2I4 2W4 2F5 2I5 2W5\n");
}

TEST(LinearOrders, OneDeviceAlternatesFromTheStart) {
  EXPECT_EQ(draw_orders(one_forward_one_backward(sized(1, 3))), "d0: 0F0 0B0 0F1 0B1 0F2 0B2\n");
  OrderProblem problem = sized(1, 4);
  problem.in_flight = 3;
  EXPECT_EQ(draw_orders(one_forward_one_backward(problem)),
            "d0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n");
}

TEST(LinearOrders, NoMicroBatchesMakeEmptyLists) {
  const DeviceOrders empty(3);
  for (const OrderGenerator make :
       {gpipe, reverse_gpipe, one_forward_one_backward, eager, zb_h1, zb_h2}) {
    EXPECT_EQ(make(sized(3, 0)), empty);
  }
  EXPECT_EQ(make_two_bp_order(gpipe(sized(3, 0))), empty);
  EXPECT_EQ(make_pipedream_order(sized(3, 0), 1), empty);
}

TEST(LinearOrders, SeveralChunksAreForGpipeAlone) {
  OrderProblem problem = make_order_problem(2, 2, 3, {Duration{2}, Duration{2}, Duration{2}});
  EXPECT_THROW(one_forward_one_backward(problem), std::logic_error);
  EXPECT_THROW(zb_h1(problem), std::logic_error);
  EXPECT_THROW(make_pipedream_order(problem, 1), std::logic_error);
  EXPECT_THROW(make_pipedream_order(sized(2, 3), 0), std::logic_error);
}

// time_orders throws where work is missing, doubled or deadlocked. A fused order holds its warm-up,
// a split order K micro-batches, on every device.
TEST(LinearOrders, EveryOrderEndsAndHoldsWhatItsInFlightSays) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 14; ++m) {
      for (int in_flight = 1; in_flight <= 2 * p + 2; ++in_flight) {
        SCOPED_TRACE(fmt::format("p={} m={} K={}", p, m, in_flight));
        OrderProblem problem = sized(p, m);
        problem.in_flight = in_flight;
        const auto peaks = [&](const DeviceOrders& orders) {
          return time_orders(orders, problem, Placement::kLinear).peak_chunks;
        };
        std::vector<int> by_warm_up;
        for (int s = 0; s < p; ++s) by_warm_up.push_back(std::min(m, warm_up(in_flight, p, s)));
        const DeviceOrders host = one_forward_one_backward(problem);
        EXPECT_EQ(peaks(host), by_warm_up);
        EXPECT_EQ(peaks(make_pipedream_order(problem, 2)), by_warm_up);
        EXPECT_EQ(peaks(zb_h1(problem)),
                  std::vector<int>(static_cast<std::size_t>(p), std::min(m, in_flight)));
        EXPECT_EQ(peaks(make_two_bp_order(host)), std::vector<int>(static_cast<std::size_t>(p), m));
      }
      EXPECT_EQ(time_orders(gpipe(sized(p, m)), sized(p, m), Placement::kLinear).peak_chunks,
                std::vector<int>(static_cast<std::size_t>(p), m));
    }
  }
}

// The published memory is p micro-batches on the first device down to (p+1)/2 on the last, where a
// micro-batch between I and W counts half.
TEST(LinearOrders, ZbH1HoldsHalvesOfWhatHasOnlyItsWeightGradientLeft) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = p; m <= 2 * p; ++m) {
      std::vector<int> halves;
      for (int r = 0; r < p; ++r) halves.push_back(2 * p - r);
      EXPECT_EQ(time_orders(zb_h1(sized(p, m)), sized(p, m), Placement::kLinear).peak_half_chunks,
                halves);
    }
  }
}

}  // namespace
}  // namespace frazil
