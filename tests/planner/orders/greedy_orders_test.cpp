#include "planner/orders/greedy_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "planner/orders/linear_orders.h"
#include "profiles/error.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

using Times = std::vector<std::int64_t>;

OrderProblem draw_problem(Random& random, int chunks) {
  const int devices = draw(random, 1, 5);
  OrderProblem problem = make_bare_problem(devices, chunks, draw(random, 1, 9));
  problem.hop = Duration{draw(random, 0, 1) * draw(random, 0, 9)};
  for (int s = 0; s < problem.stages(); ++s) {
    problem.times.push_back(
        {Duration{draw(random, 1, 9)}, Duration{draw(random, 1, 9)}, Duration{draw(random, 0, 9)}});
  }
  return problem;
}

// Goes from one tick to the next and asks every free device at each tick for every work there is.
struct TickByTick {
  struct Rules {
    Placement placement;
    bool recompute;
    Times forward, backward;  // by stage
    std::int64_t hop;
  };
  const OrderProblem& problem;
  const Rules& rules;
  std::map<std::tuple<ActionKind, int, int>, std::int64_t> ends = {};

  int place(int stage) const { return device_of_stage(rules.placement, problem.devices, 0, stage); }
  bool has(ActionKind kind, int from, int micro_batch, int to, std::int64_t now) const {
    const auto end = ends.find({kind, from, micro_batch});
    return end != ends.end() && end->second + (place(from) == place(to) ? 0 : rules.hop) <= now;
  }
  bool can_run(ActionKind kind, int s, int m, std::int64_t now) const {
    const int last = problem.stages() - 1;
    const bool recomputed = rules.recompute && s < last;
    if (ends.count({kind, s, m}) > 0) return false;
    if (kind == ActionKind::kForward) return s == 0 || has(kind, s - 1, m, s, now);
    const bool gradient = s == last ? has(ActionKind::kForward, s, m, s, now)
                                    : has(ActionKind::kBackward, s + 1, m, s, now);
    if (kind == ActionKind::kRecompute) return recomputed && gradient;
    return gradient && (!recomputed || has(ActionKind::kRecompute, s, m, s, now));
  }
  // Lists backwards before recomputes before forwards; backwards and recomputes begin with the
  // shallowest stage, forwards with the deepest.
  std::vector<OrderedWork> wishes(int device) const {
    std::vector<OrderedWork> list;
    for (const auto kind : {ActionKind::kBackward, ActionKind::kRecompute, ActionKind::kForward}) {
      for (int i = 0; i < problem.stages(); ++i) {
        const int s = kind == ActionKind::kForward ? problem.stages() - 1 - i : i;
        if (place(s) != device) continue;
        for (int m = 0; m < problem.micro_batches; ++m) list.push_back({kind, false, 0, s, m});
      }
    }
    return list;
  }
  DeviceOrders run(std::int64_t until) {
    const auto devices = static_cast<std::size_t>(problem.devices);
    DeviceOrders orders(devices);
    Times free(devices, 0);
    for (std::int64_t now = 0; now < until; ++now) {
      for (std::size_t d = 0; d < devices; ++d) {
        if (free[d] > now) continue;
        for (const OrderedWork& work : wishes(static_cast<int>(d))) {
          if (!can_run(work.kind, work.stage, work.micro_batch, now)) continue;
          const auto s = static_cast<std::size_t>(work.stage);
          free[d] =
              now + (work.kind == ActionKind::kBackward ? rules.backward[s] : rules.forward[s]);
          ends[{work.kind, work.stage, work.micro_batch}] = free[d];
          orders[d].push_back(work);
          break;
        }
      }
    }
    return orders;
  }
};

TEST(HanayoOrder, GoesBackwardFirstOverOneWave) {
  const OrderProblem problem = make_unit_problem(4, 2, 4);
  EXPECT_EQ(draw_orders(make_hanayo_order(problem)),
            "d0: 0F0 0F1 0F2 0F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 0B0 0B1 0B2 0B3\n"
            "d1: 1F0 1F1 1F2 1F3 6F0 6F1 6B0 6F2 6B1 6F3 6B2 6B3 1B0 1B1 1B2 1B3\n"
            "d2: 2F0 2F1 2F2 5F0 2F3 5F1 5F2 5F3 5B0 5B1 2B0 5B2 2B1 5B3 2B2 2B3\n"
            "d3: 3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4B0 3B0 4B1 3B1 4B2 3B2 4B3 3B3\n");
}

// Times are eighths of a device's forward share, so that the share of one of 8 chunks is a whole
// number; B = 2F.
TEST(HanayoOrder, TakesLessTimeWithMoreWaves) {
  const auto makespan = [](int waves) {
    const OrderProblem problem = make_order_problem(4, 2 * waves, 4, make_times(8, 8, 8));
    return time_orders(make_hanayo_order(problem), problem, Placement::kWave).makespan;
  };
  EXPECT_EQ(makespan(1), 8 * 18);
  EXPECT_EQ(makespan(2), 122);  // 15.25
  EXPECT_EQ(makespan(4), 109);  // 13.625; without bubbles it would be 12
}

TEST(HanayoOrder, HoldsAsManyChunksAsArrive) {
  const auto peak = [](int waves, int micro_batches) {
    const OrderProblem problem =
        make_order_problem(4, 2 * waves, micro_batches, make_times(8, 8, 8));
    const ReferenceTimes times = time_orders(make_hanayo_order(problem), problem, Placement::kWave);
    return most(times.peak_chunks);
  };
  EXPECT_EQ(peak(1, 4), 2 * 4);
  EXPECT_EQ(peak(1, 8), 11);  // 5.5 micro-batches
  EXPECT_EQ(peak(4, 8), 35);  // 4.375
}

TEST(HanayoOrder, TakesABackwardForTwoForwardsWhereTimesAreNotKnown) {
  for (const int chunks : {2, 4, 6}) {
    OrderProblem unknown = make_bare_problem(3, chunks, 7);
    OrderProblem known = unknown;
    known.times.assign(static_cast<std::size_t>(known.stages()),
                       {Duration{5}, Duration{3}, Duration{7}});
    EXPECT_EQ(make_hanayo_order(unknown), make_hanayo_order(known));
  }
}

TEST(HanayoOrder, IsTheListThatGoingTickByTickMakes) {
  constexpr std::uint64_t kSeed = 20230812;
  Random random(kSeed);
  for (int i = 0; i < draws(150); ++i) {
    const OrderProblem problem = draw_problem(random, 2 * draw(random, 1, 3));
    SCOPED_TRACE(fmt::format("seed {} draw {}: {}", kSeed, i, describe(problem)));
    TickByTick::Rules rules{Placement::kWave, false, {}, {}, problem.hop.count()};
    for (const StageTimes& times : problem.times) {
      rules.forward.push_back(times.forward.count());
      rules.backward.push_back((times.total() - times.forward).count());
    }
    const DeviceOrders orders = make_hanayo_order(problem);
    const ReferenceTimes times = time_orders(orders, problem, Placement::kWave);
    ASSERT_EQ(orders, (TickByTick{problem, rules}.run(times.makespan)));
  }
}

TEST(HanayoOrder, RefusesHalfAWaveAndALimitInFlight) {
  EXPECT_THROW(make_hanayo_order(make_bare_problem(4, 1, 8)), InfeasibleError);
  EXPECT_THROW(make_hanayo_order(make_bare_problem(4, 3, 8)), InfeasibleError);
  OrderProblem limited = make_bare_problem(4, 2, 8);
  limited.in_flight = 4;
  EXPECT_THROW(make_hanayo_order(limited), InfeasibleError);
}

TEST(VarunaOrder, RecomputesJustBeforeItsBackward) {
  EXPECT_EQ(draw_orders(make_varuna_order(make_bare_problem(4, 1, 8))),
            "d0: 0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0R0 0B0 0R1 0B1 0R2 0B2 0R3 0B3 0R4 0B4 0R5 0B5 "
            "0R6 0B6 0R7 0B7\n"
            "d1: 1F0 1F1 1F2 1F3 1F4 1F5 1R0 1B0 1R1 1B1 1R2 1B2 1F6 1F7 1R3 1B3 1R4 1B4 1R5 1B5 "
            "1R6 1B6 1R7 1B7\n"
            "d2: 2F0 2F1 2F2 2R0 2B0 2R1 2B1 2R2 2B2 2F3 2F4 2F5 2R3 2B3 2R4 2B4 2R5 2B5 2F6 2F7 "
            "2R6 2B6 2R7 2B7\n"
            "d3: 3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7\n");
}

TEST(VarunaOrder, IsFasterThanOneForwardOneBackwardThatRecomputes) {
  const OrderProblem problem = make_unit_problem(4, 1, 8);
  const ReferenceTimes varuna =
      time_orders(make_varuna_order(problem), problem, Placement::kLinear);
  EXPECT_EQ(varuna.makespan, 39);
  EXPECT_EQ(varuna.peak_chunks, (std::vector<int>{8, 6, 3, 1}));

  // R runs right before B, once the gradient is there, so the backward is longer by a forward.
  OrderProblem recomputing = problem;
  for (int s = 0; s < 3; ++s) {
    recomputing.times[static_cast<std::size_t>(s)].backward_input += Duration{1};
  }
  const DeviceOrders reference = make_one_forward_one_backward_order(recomputing, 4);
  EXPECT_EQ(time_orders(reference, recomputing, Placement::kLinear).makespan, 42);
}

TEST(VarunaOrder, IsTheListThatGoingSlotBySlotMakes) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 14; ++m) {
      SCOPED_TRACE(fmt::format("p={} m={}", p, m));
      const OrderProblem problem = make_bare_problem(p, 1, m);
      const Times slot(static_cast<std::size_t>(p), 1);
      const TickByTick::Rules rules{Placement::kLinear, true, slot, slot, 0};
      ASSERT_EQ(make_varuna_order(problem), (TickByTick{problem, rules}.run(3 * m + 3 * p * m)));
    }
  }
}

TEST(VarunaOrder, IsCompleteForAnyTimes) {
  constexpr std::uint64_t kSeed = 20220405;
  Random random(kSeed);
  for (int i = 0; i < 300; ++i) {
    const OrderProblem problem = draw_problem(random, 1);
    SCOPED_TRACE(fmt::format("seed {} draw {}: {}", kSeed, i, describe(problem)));
    const DeviceOrders orders = make_varuna_order(problem);
    ASSERT_NO_THROW(time_orders(orders, problem, Placement::kLinear));
    for (int d = 0; d < problem.devices; ++d) {
      const DeviceOrder& order = orders[static_cast<std::size_t>(d)];
      const auto recomputes = std::count_if(
          order.begin(), order.end(),
          [](const OrderedWork& work) { return work.kind == ActionKind::kRecompute; });
      EXPECT_EQ(recomputes, d + 1 == problem.devices ? 0 : problem.micro_batches);
    }
  }
}

TEST(VarunaOrder, RefusesChunksAndALimitInFlight) {
  EXPECT_THROW(make_varuna_order(make_bare_problem(4, 2, 8)), InfeasibleError);
  OrderProblem limited = make_bare_problem(4, 1, 8);
  limited.in_flight = 4;
  EXPECT_THROW(make_varuna_order(limited), InfeasibleError);
}

}  // namespace
}  // namespace frazil
