// Tests the closed forms of planner/orders/linear_orders.h on random times, and where each form
// ends.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/orders/linear_orders.h"
#include "tests/planner/support/linear_generators.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

EqualStages draw_linear_case(Random& random) {
  EqualStages x;
  x.p = draw(random, 1, 7);
  x.m = draw(random, 1, 18);
  const std::int64_t longest = draw(random, 0, 1) == 0 ? 12 : 1000;
  x.f = draw(random, 1, longest);
  x.i = draw(random, 1, longest);
  x.w = draw(random, 1, longest);
  return x;
}

void for_linear_cases(std::uint64_t seed, const std::function<void(Random&, EqualStages&)>& narrow,
                      const std::function<void(const EqualStages&)>& check) {
  for_drawn_stages(seed, draw_linear_case, narrow, check);
}

ReferenceTimes time_linear(OrderGenerator make, const EqualStages& x) {
  const OrderProblem problem = x.problem();
  return time_orders(make(problem), problem, Placement::kLinear);
}
std::int64_t makespan(OrderGenerator make, const EqualStages& x) {
  return time_linear(make, x).makespan;
}
std::int64_t span(OrderGenerator make, const EqualStages& x) { return time_linear(make, x).span; }

TEST(LinearOrders, GpipeTakesItsClosedFormWithAnyHop) {
  const auto any_hop = [](Random& random, EqualStages& x) { x.c = draw(random, 0, 2 * x.t()); };
  for_linear_cases(1, any_hop, [](const EqualStages& x) {
    const std::int64_t form = (x.m + x.p - 1) * x.t() + 2 * (x.p - 1) * x.c;
    EXPECT_EQ(makespan(gpipe, x), form);
    EXPECT_EQ(makespan(reverse_gpipe, x), form);
  });
}

TEST(LinearOrders, OneForwardOneBackwardTakesTheTimeOfGpipeWithoutHops) {
  for_linear_cases(2, as_it_is, [](const EqualStages& x) {
    EXPECT_EQ(makespan(one_forward_one_backward, x), (x.m + x.p - 1) * x.t());
  });
}

TEST(LinearOrders, OneForwardOneBackwardPaysTwoHopsForAlmostEveryMicroBatch) {
  const auto whole_rounds = [](Random& random, EqualStages& x) {
    x.p = draw(random, 2, 7);
    x.m = x.p * draw(random, 1, 3);
    x.c = draw(random, 0, 2 * x.t());
  };
  for_linear_cases(3, whole_rounds, [](const EqualStages& x) {
    EXPECT_EQ(makespan(one_forward_one_backward, x),
              (x.m + x.p - 1) * x.t() + (2 * x.m * (x.p - 1) / x.p + 2 * (x.p - 2)) * x.c);
  });
}

TEST(LinearOrders, OneForwardOneBackwardTakesItsClosedFormForAnyNumberOfMicroBatches) {
  const auto any_hop = [](Random& random, EqualStages& x) { x.c = draw(random, 0, 2 * x.t()); };
  for_linear_cases(4, any_hop, [](const EqualStages& x) {
    const std::int64_t rounds = (x.m - 2 + x.p) / x.p - 1;  // floor((m-2)/p), also for m = 1
    EXPECT_EQ(makespan(one_forward_one_backward, x),
              (x.m + x.p - 1) * x.t() + 2 * (x.m + x.p - 3 - rounds) * x.c);
  });
}

TEST(LinearOrders, TheFormForWholeRoundsNeedsWholeRounds) {
  const EqualStages x{.p = 2, .m = 1, .c = 1};
  EXPECT_EQ((x.m + x.p - 1) * x.t() + (2 * x.m * (x.p - 1) / x.p + 2 * (x.p - 2)) * x.c, 7);
  EXPECT_EQ(makespan(one_forward_one_backward, x), 8);
}

std::int64_t hidden_hops(const EqualStages& x) {
  return (x.m + x.p - 1) * x.t() + 2 * (x.p - 1) * x.c;
}

TEST(LinearOrders, EagerHidesHopsOfUpToHalfAMicroBatch) {
  const auto short_hop = [](Random& random, EqualStages& x) { x.c = draw(random, 0, x.t() / 2); };
  for_linear_cases(5, short_hop,
                   [](const EqualStages& x) { EXPECT_EQ(makespan(eager, x), hidden_hops(x)); });
}

TEST(LinearOrders, EagerPaysForLongerHops) {
  const auto long_hop = [](Random& random, EqualStages& x) {
    x.p = draw(random, 2, 7);
    x.m = draw(random, 2 * x.p, 18);
    x.c = draw(random, x.t() / 2 + 1, 2 * x.t());
  };
  for_linear_cases(6, long_hop,
                   [](const EqualStages& x) { EXPECT_GT(makespan(eager, x), hidden_hops(x)); });
  const EqualStages x{.p = 2, .m = 4, .c = 2};
  EXPECT_EQ(hidden_hops(x), 19);
  EXPECT_EQ(makespan(eager, x), 20);
}

DeviceOrders with_five_in_flight(const OrderProblem& problem) {
  return make_one_forward_one_backward_order(problem, 5);
}

TEST(LinearOrders, OneMoreInFlightHidesOnlyShortHops) {
  const EqualStages thirtieth{.p = 4, .m = 16, .f = 10, .i = 10, .w = 10, .c = 1};
  EXPECT_EQ(makespan(with_five_in_flight, thirtieth), hidden_hops(thirtieth));
  const EqualStages tenth{.p = 4, .m = 16, .f = 10, .i = 10, .w = 10, .c = 3};
  EXPECT_EQ(hidden_hops(tenth), 588);
  EXPECT_EQ(makespan(with_five_in_flight, tenth), 616);
  EXPECT_EQ(makespan(eager, tenth), 588);
}

std::int64_t zb_h1_makespan(const EqualStages& x) {
  const std::int64_t idle = std::max({x.f + 3 * x.c, x.i + 2 * x.c, x.f + x.i - x.w + 4 * x.c});
  return x.m * x.t() + (x.p - 1) * idle;
}
std::int64_t zb_h1_span(const EqualStages& x) {
  return x.m * x.t() + (x.p - 1) * std::max(x.i, x.f + x.i - x.w);
}

TEST(LinearOrders, ZbH1TakesItsClosedForms) {
  const auto full = [](Random& random, EqualStages& x) { x.m = x.p + draw(random, 0, 12); };
  for_linear_cases(7, full, [](const EqualStages& x) {
    EXPECT_EQ(makespan(zb_h1, x), zb_h1_makespan(x));
    EXPECT_EQ(span(zb_h1, x), zb_h1_span(x));
  });
}

TEST(LinearOrders, ZbH1NeedsAsManyMicroBatchesAsDevices) {
  const EqualStages x{.p = 2, .m = 1};
  EXPECT_EQ(zb_h1_makespan(x), 4);
  EXPECT_EQ(makespan(zb_h1, x), 5);
  EXPECT_EQ(zb_h1_span(x), 4);
  EXPECT_EQ(span(zb_h1, x), 5);
}

TEST(LinearOrders, ZbH1PaysForHopsByDeviceAndNotByMicroBatch) {
  const auto short_hop = [](Random& random, EqualStages& x) {
    x.m = x.p + draw(random, 1, 12);
    x.c = draw(random, 0, x.w / 2);
  };
  for_linear_cases(8, short_hop,
                   [](const EqualStages& x) { EXPECT_EQ(makespan(zb_h1, x), zb_h1_makespan(x)); });
}

TEST(LinearOrders, ZbH1PaysMoreForHopsLongerThanHalfAWeightGradient) {
  const EqualStages x{.p = 2, .m = 5, .c = 1};
  EXPECT_EQ(zb_h1_makespan(x), 20);
  EXPECT_EQ(makespan(zb_h1, x), 21);
}

TEST(LinearOrders, ZbH1PaysTwoHopsLessForTheLeastMicroBatches) {
  const auto least = [](Random& random, EqualStages& x) {
    x.p = x.m = draw(random, 2, 9);
    x.c = draw(random, 0, std::min({x.f, x.i, x.w}) / 2);
  };
  for_linear_cases(10, least, [](const EqualStages& x) {
    const std::int64_t others = x.p - 1;
    const std::int64_t idle =
        std::max({others * (x.f + 3 * x.c) - 2 * x.c, others * (x.i + 2 * x.c),
                  others * (x.f + x.i - x.w + 4 * x.c) - 2 * x.c});
    EXPECT_EQ(makespan(zb_h1, x), x.m * x.t() + idle);
  });
  const EqualStages x{.p = 2, .m = 2, .f = 8, .i = 8, .w = 8, .c = 1};
  EXPECT_EQ(zb_h1_makespan(x), 60);
  EXPECT_EQ(makespan(zb_h1, x), 58);
}

std::int64_t zb_h2_makespan(const EqualStages& x) {
  return x.m * x.t() + (x.p - 1) * std::max({x.f, x.i - x.f, x.f + x.i - 2 * x.w});
}
std::int64_t zb_h2_span(const EqualStages& x) {
  const std::int64_t idle = std::max({std::int64_t{0}, x.i - x.f, x.f + x.i - 2 * x.w});
  return x.m * x.t() + (x.p - 1) * idle;
}

TEST(LinearOrders, ZbH2TakesItsClosedForms) {
  const auto full = [](Random& random, EqualStages& x) { x.m = 2 * x.p - 1 + draw(random, 0, 9); };
  for_linear_cases(9, full, [](const EqualStages& x) {
    EXPECT_EQ(makespan(zb_h2, x), zb_h2_makespan(x));
    EXPECT_EQ(span(zb_h2, x), zb_h2_span(x));
  });
}

TEST(LinearOrders, ZbH2NeedsAlmostTwiceAsManyMicroBatchesAsDevices) {
  const EqualStages x{.p = 2, .m = 2, .f = 1, .i = 2, .w = 1};
  EXPECT_EQ(zb_h2_makespan(x), 9);
  EXPECT_EQ(makespan(zb_h2, x), 10);
  EXPECT_EQ(zb_h2_span(x), 9);
  EXPECT_EQ(span(zb_h2, x), 10);
}

TEST(LinearOrders, WithABarrierZbH2BuysNothingOverZbH1AtUnitTimes) {
  for (std::int64_t p = 1; p <= 8; ++p) {
    for (std::int64_t m = 2 * p - 1; m <= 3 * p; ++m) {
      const EqualStages x{.p = p, .m = m};
      EXPECT_EQ(makespan(zb_h1, x), 3 * m + p - 1);
      EXPECT_EQ(makespan(zb_h2, x), 3 * m + p - 1);
      EXPECT_EQ(span(zb_h1, x), 3 * m + p - 1);
      EXPECT_EQ(span(zb_h2, x), 3 * m);
    }
  }
  const EqualStages published{.p = 4, .m = 8};
  EXPECT_EQ(makespan(zb_h1, published), 27);
  EXPECT_EQ(makespan(zb_h2, published), 27);
  EXPECT_EQ(span(zb_h1, published), 27);
  EXPECT_EQ(span(zb_h2, published), 24);
}

DeviceOrders two_bp(const OrderProblem& problem) {
  return make_two_bp_order(one_forward_one_backward(problem));
}
DeviceOrders two_bp_gpipe(const OrderProblem& problem) {
  return make_two_bp_order(reverse_gpipe(problem));
}

TEST(LinearOrders, TwoBpTakesItsHostWithoutWeightGradientsAndThenThem) {
  for_linear_cases(11, as_it_is, [](const EqualStages& x) {
    const std::int64_t form = (x.m + x.p - 1) * (x.f + x.i) + x.m * x.w;
    EXPECT_EQ(makespan(two_bp, x), form);
    EXPECT_EQ(makespan(two_bp_gpipe, x), form);
  });
  const EqualStages published{.p = 4, .m = 8};
  EXPECT_EQ(makespan(two_bp, published), 30);
  EXPECT_EQ(makespan(one_forward_one_backward, published), 33);
}

// The bubbles of p = 8, m = 32 are in tenths of a percent of makespan and of span, with unit times
// and with those of a GPT profile.
TEST(LinearOrders, BubblesAreThoseOfThePublishedTable) {
  struct Row {
    OrderGenerator make;
    std::vector<long> unit, gpt;
  };
  const std::vector<Row> rows{
      {gpipe, {179, 179}, {181, 181}},
      {one_forward_one_backward, {179, 179}, {189, 189}},
      {zb_h1, {68, 68}, {120, 120}},
      {zb_h2, {68, 0}, {82, 82}},
  };
  const auto bubbles = [](const Row& row, const EqualStages& x) {
    const ReferenceTimes times = time_linear(row.make, x);
    const auto bubble = [&](std::int64_t length) {
      return std::lround(1000.0 * static_cast<double>(length - x.m * x.t()) /
                         static_cast<double>(length));
    };
    return std::vector<long>{bubble(times.makespan), bubble(times.span)};
  };
  for (const Row& row : rows) {
    EXPECT_EQ(bubbles(row, {.p = 8, .m = 32}), row.unit);
    EXPECT_EQ(bubbles(row, {.p = 8, .m = 32, .f = 1855, .i = 1807, .w = 928, .c = 31}), row.gpt);
  }
}

}  // namespace
}  // namespace frazil
