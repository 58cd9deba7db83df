#include "planner/orders/looped_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "profiles/error.h"
#include "tests/planner/support/linear_generators.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

// Draws F, I and W as multiples of v, by which the forms divide them, and m >= p.
EqualStages draw_looped_case(Random& random) {
  EqualStages x;
  x.p = draw(random, 1, 6);
  x.v = draw(random, 1, 4);
  x.m = x.p + draw(random, 0, 12);
  const std::int64_t longest = draw(random, 0, 1) == 0 ? 12 : 1000;
  x.f = x.v * draw(random, 1, longest);
  x.i = x.v * draw(random, 1, longest);
  x.w = x.v * draw(random, 1, longest);
  return x;
}

void for_looped_cases(std::uint64_t seed, const std::function<void(Random&, EqualStages&)>& narrow,
                      const std::function<void(const EqualStages&)>& check) {
  for_drawn_stages(seed, draw_looped_case, narrow, check);
}

DeviceOrders interleaved(const OrderProblem& problem) {
  return make_interleaved_order(problem, problem.devices);
}
DeviceOrders interleaved_zb(const OrderProblem& problem) {
  return make_interleaved_zb_order(problem, problem.devices);
}
DeviceOrders looped_bfs(const OrderProblem& problem) { return make_gpipe_order(problem); }
DeviceOrders reverse_looped_bfs(const OrderProblem& problem) { return reverse_gpipe(problem); }

ReferenceTimes time_looped(OrderGenerator make, const EqualStages& x) {
  const OrderProblem problem = x.problem();
  return time_orders(make(problem), problem, Placement::kLooped);
}

// Draws the picture of one device.
std::string draw_device(const DeviceOrders& orders, std::size_t device) {
  const std::string text = draw_orders({orders.at(device)});
  return text.substr(4, text.size() - 5);
}

TEST(LoopedOrders, BreadthFirstPassesAllMicroBatchesThroughAChunkBeforeTheNext) {
  EXPECT_EQ(draw_orders(looped_bfs(make_unit_problem(2, 2, 3))),
            "d0: 0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2\n"
            "d1: 1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2\n");
  EXPECT_EQ(draw_device(reverse_looped_bfs(make_unit_problem(4, 2, 8)), 0),
            "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 4F0 4F1 4F2 4F3 4F4 4F5 4F6 4F7 "
            "4B7 4B6 4B5 4B4 4B3 4B2 4B1 4B0 0B7 0B6 0B5 0B4 0B3 0B2 0B1 0B0");
}

TEST(LoopedOrders, InterleavedPassesGroupsOfPThroughAllChunks) {
  const DeviceOrders orders = interleaved(make_unit_problem(4, 2, 8));
  EXPECT_EQ(draw_device(orders, 0),
            "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 "
            "0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 0B1 "
            "0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7");
  EXPECT_EQ(draw_device(orders, 3),
            "3F0 3F1 3F2 3F3 "
            "7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3F4 3B0 3F5 3B1 3F6 3B2 3F7 3B3 "
            "7F4 7B4 7F5 7B5 7F6 7B6 7F7 7B7 "
            "3B4 3B5 3B6 3B7");
}

TEST(LoopedOrders, InterleavedZbStartsTheFirstWeightGradientOnDeviceRAfterRMoreBackwards) {
  const std::string device_1 = draw_device(interleaved_zb(make_unit_problem(4, 2, 8)), 1);
  EXPECT_EQ(device_1.substr(0, 95),
            "1F0 1F1 1F2 1F3 5F0 5F1 5F2 5I0 5F3 5I1 5W0 1F4 5I2 5W1 1F5 5I3 5W2 1F6 1I0 5W3 1F7 "
            "1I1 1W0 5F4");
}

// The lists are PyTorch's for 2 devices with 2 stages each and 8 micro-batches.
TEST(LoopedOrders, InterleavedZbIsThePublishedOneOfTwoDevices) {
  EXPECT_EQ(draw_orders(interleaved_zb(make_unit_problem(2, 2, 8))),
            "d0: 0F0 0F1 2F0 2F1 2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 0F4 2I3 "
            "2W3 0F5 0I2 0W2 2F4 0I3 0W3 2F5 2I4 2W4 0F6 2I5 2W5 0F7 0I4 0W4 2F6 0I5 0W5 2F7 2I6 "
            "2W6 2I7 2W7 0I6 0W6 0I7 0W7\n"
            "d1: 1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1F4 "
            "1I2 3W3 1F5 1I3 1W2 3F4 3I4 1W3 3F5 3I5 3W4 1F6 1I4 3W5 1F7 1I5 1W4 3F6 3I6 1W5 3F7 "
            "3I7 3W6 1I6 3W7 1I7 1W6 1W7\n");
}

TEST(LoopedOrders, WithOneChunkTheyAreTheLinearFamily) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 0; m <= 14; ++m) {
      const OrderProblem problem = make_unit_problem(p, 1, m);
      EXPECT_EQ(interleaved_zb(problem), make_split_linear_order(problem, p));
      EXPECT_EQ(interleaved(problem), make_one_forward_one_backward_order(problem, 2 * p - 1));
    }
  }
}

TEST(LoopedOrders, GroupsThatDoNotDivideAreEvenedOut) {
  // The groups of 5 micro-batches over 2 devices are 3 and 2, not 2, 2 and 1.
  EXPECT_EQ(
      draw_orders(interleaved(make_unit_problem(2, 2, 5))),
      "d0: 0F0 0F1 0F2 2F0 2F1 2F2 2B0 0F3 2B1 0F4 2B2 2F3 0B0 2F4 0B1 0B2 2B3 2B4 0B3 0B4\n"
      "d1: 1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4\n");
  // The groups of 16 micro-batches over 4 devices are 6, 5 and 5 if a group has 6; a group of 16 or
  // more holds all.
  const OrderProblem sixteen = make_unit_problem(4, 2, 16);
  const std::string all = "3F0 3F1 3F2 3F3 3F4 3F5 3F6 3F7 3F8 3F9 3F10 3F11 3F12 3F13 3F14 3F15 ";
  EXPECT_EQ(draw_device(make_interleaved_order(sixteen, 6), 3).substr(0, 80),
            "3F0 3F1 3F2 3F3 3F4 3F5 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 7F4 7B4 7F5 7B5 3F6 3B0 ");
  EXPECT_EQ(draw_device(make_interleaved_order(sixteen, 16), 3).substr(0, all.size()), all);
  EXPECT_EQ(make_interleaved_order(sixteen, std::numeric_limits<int>::max()),
            make_interleaved_order(sixteen, 16));
  EXPECT_EQ(make_interleaved_zb_order(sixteen, 17), make_interleaved_zb_order(sixteen, 16));
}

TEST(LoopedOrders, FewerMicroBatchesThanDevicesAreOneGroup) {
  EXPECT_EQ(draw_orders(interleaved(make_unit_problem(3, 2, 2))),
            "d0: 0F0 0F1 3F0 3F1 3B0 3B1 0B0 0B1\n"
            "d1: 1F0 1F1 4F0 4F1 4B0 4B1 1B0 1B1\n"
            "d2: 2F0 2F1 5F0 5B0 5F1 5B1 2B0 2B1\n");
  EXPECT_EQ(make_interleaved_order(make_unit_problem(3, 2, 2), 2),
            interleaved(make_unit_problem(3, 2, 2)));
}

// Makes interleaved 1F1B as published, whose last group is short.
DeviceOrders literal_interleaved(const OrderProblem& problem, int group) {
  const auto [p, v, m] = std::tuple(problem.devices, problem.chunks, problem.micro_batches);
  DeviceOrders orders;
  for (int r = 0; r < p; ++r) {
    DeviceOrder forwards, backwards;
    for (int i = 0; i < v * m; ++i) {
      const int first = i / (v * group) * group;
      const int size = std::min(group, m - first);
      const int chunk = (i - first * v) / size;
      const int micro_batch = first + (i - first * v) % size;
      forwards.push_back({ActionKind::kForward, false, 0, chunk * p + r, micro_batch});
      backwards.push_back({ActionKind::kBackward, false, 0, (v - 1 - chunk) * p + r, micro_batch});
    }
    const int warm_up = std::min((v - 1) * group + 2 * (p - 1 - r), v * m);
    DeviceOrder order(forwards.begin(), forwards.begin() + warm_up);
    for (int i = 0; i < v * m; ++i) {
      if (warm_up + i < v * m) order.push_back(forwards[static_cast<std::size_t>(warm_up + i)]);
      order.push_back(backwards[static_cast<std::size_t>(i)]);
    }
    orders.push_back(order);
  }
  return orders;
}

TEST(LoopedOrders, InterleavedIsThePublishedRuleWhereGroupsDivideTheMicroBatches) {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int group = p; group <= 2 * p; ++group) {
        for (int m = group; m <= 4 * group; m += group) {
          const OrderProblem problem = make_unit_problem(p, v, m);
          EXPECT_EQ(make_interleaved_order(problem, group), literal_interleaved(problem, group));
        }
      }
    }
  }
}

TEST(LoopedOrders, EvenGroupsEndWhereAShortLastGroupDeadlocks) {
  const OrderProblem problem = make_unit_problem(4, 3, 5);
  EXPECT_THROW(time_orders(literal_interleaved(problem, 4), problem, Placement::kLooped),
               std::runtime_error);
  EXPECT_NO_THROW(time_orders(interleaved(problem), problem, Placement::kLooped));
}

TEST(LoopedOrders, EvenGroupsAreNeverSlowerThanAShortLastGroup) {
  const auto uneven = [](Random& random, EqualStages& x) {
    x.p = draw(random, 2, 5);
    x.m = x.p * draw(random, 1, 3) + draw(random, 1, x.p - 1);
  };
  int ended = 0;
  for_looped_cases(6, uneven, [&](const EqualStages& x) {
    const OrderProblem problem = x.problem();
    const DeviceOrders literal = literal_interleaved(problem, problem.devices);
    try {
      const std::int64_t with_short_group =
          time_orders(literal, problem, Placement::kLooped).makespan;
      ++ended;
      EXPECT_LE(time_looped(interleaved, x).makespan, with_short_group);
    } catch (const std::runtime_error&) {
      EXPECT_NO_THROW(time_looped(interleaved, x));
    }
  });
  EXPECT_GT(ended, 250);
}

TEST(LoopedOrders, RefusesGroupsShorterThanTheDevices) {
  for (const auto make : {make_interleaved_order, make_interleaved_zb_order}) {
    try {
      make(make_unit_problem(4, 2, 8), 3);
      ADD_FAILURE() << "groups of 3 over 4 devices";
    } catch (const InfeasibleError& error) {
      EXPECT_STREQ(error.what(),
                   "an interleaved schedule over 4 devices takes groups of at least 4 "
                   "micro-batches, not 3: shorter ones can wait for each other");
    }
    EXPECT_NO_THROW(make(make_unit_problem(4, 2, 3), 3));
    EXPECT_THROW(make(make_unit_problem(4, 2, 8), 0), std::logic_error);
  }
}

TEST(LoopedOrders, NeedsARuleForEachDevice) {
  EXPECT_THROW(make_looped_orders(make_unit_problem(2, 1, 3), 1, {DeviceRule{}}), std::logic_error);
  EXPECT_THROW(make_looped_orders(make_unit_problem(1, 1, 3), 0, {DeviceRule{}}), std::logic_error);
}

TEST(LoopedOrders, NoMicroBatchesMakeEmptyLists) {
  const DeviceOrders empty(3);
  for (const OrderGenerator make : {interleaved, interleaved_zb, looped_bfs, reverse_looped_bfs}) {
    EXPECT_EQ(make(make_unit_problem(3, 2, 0)), empty);
  }
}

// time_orders throws where work is missing, doubled or deadlocked. n groups, the first of
// g = ceil(m/n), hold on device r
//   interleaved     (v-1)g + 2(p-1-r) + 1 chunks
//   interleaved-zb  (v-1)g + p
// or all v m; for p | m that is p + (p-1)/v micro-batches on the first device, ((v-1)p+1)/v on the
// last, and p on every one.
TEST(LoopedOrders, EveryOrderEndsAndHoldsAGroupPerChunkAndAWarmUp) {
  for (int p = 1; p <= 5; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = 1; m <= 3 * p + 2; ++m) {
        for (int group = p; group <= 2 * p + 1; ++group) {
          SCOPED_TRACE(fmt::format("p={} v={} m={} group={}", p, v, m, group));
          const OrderProblem problem = make_unit_problem(p, v, m);
          const auto peaks = [&](const DeviceOrders& orders) {
            return time_orders(orders, problem, Placement::kLooped).peak_chunks;
          };
          const int groups = std::max(1, std::min((m + group - 1) / group, m / p));
          const int before = (v - 1) * ((m + groups - 1) / groups);
          std::vector<int> fused, split;
          for (int r = 0; r < p; ++r) {
            fused.push_back(std::min(v * m, before + 2 * (p - 1 - r) + 1));
            split.push_back(std::min(v * m, before + std::min(p, m)));
          }
          EXPECT_EQ(peaks(make_interleaved_order(problem, group)), fused);
          EXPECT_EQ(peaks(make_interleaved_zb_order(problem, group)), split);
        }
        const OrderProblem problem = make_unit_problem(p, v, m);
        const std::vector<int> all(static_cast<std::size_t>(p), v * m);
        EXPECT_EQ(time_orders(looped_bfs(problem), problem, Placement::kLooped).peak_chunks, all);
      }
    }
  }
}

TEST(LoopedOrders, PeaksAreThePublishedOnes) {
  const auto peaks = [](OrderGenerator make, int chunks) {
    const OrderProblem problem = make_unit_problem(4, chunks, 8);
    return time_orders(make(problem), problem, Placement::kLooped).peak_chunks;
  };
  EXPECT_EQ(peaks(interleaved, 2), (std::vector<int>{11, 9, 7, 5}));  // 5.5 .. 2.5 micro-batches
  EXPECT_EQ(peaks(interleaved, 4).front(), 19);                       // 4.75
  EXPECT_EQ(peaks(interleaved_zb, 2), (std::vector<int>{8, 8, 8, 8}));
}

std::int64_t looped_makespan(const EqualStages& x) { return x.m * x.t() + (x.p - 1) * x.t() / x.v; }

TEST(LoopedOrders, InterleavingDividesTheBubbleByTheChunks) {
  for_looped_cases(1, as_it_is, [](const EqualStages& x) {
    EXPECT_EQ(time_looped(interleaved, x).makespan, looped_makespan(x));
    EXPECT_EQ(time_looped(looped_bfs, x).makespan, looped_makespan(x));
    EXPECT_EQ(time_looped(reverse_looped_bfs, x).makespan, looped_makespan(x));
  });
}

TEST(LoopedOrders, TheBubbleIsLargerWithFewerMicroBatchesThanDevices) {
  const EqualStages x{.p = 2, .v = 2, .m = 1, .f = 2, .i = 2, .w = 2};
  EXPECT_EQ(looped_makespan(x), 9);
  EXPECT_EQ(time_looped(interleaved, x).makespan, 12);
  EXPECT_EQ(time_looped(looped_bfs, x).makespan, 12);
}

std::int64_t interleaved_with_hops(const EqualStages& x) {
  return looped_makespan(x) + 2 * (x.v * x.p - 1) * x.c;
}

// The hops add (4p-2)c if v = 2.
TEST(LoopedOrders, InterleavedPaysEachShortHopOfTheChainOnce) {
  const auto short_hop = [](Random& random, EqualStages& x) {
    x.p = draw(random, 2, 6);
    x.m = x.p * draw(random, 1, 3);
    x.c = draw(random, 0, std::min(x.f, x.i + x.w) / x.v);
  };
  for_looped_cases(2, short_hop, [](const EqualStages& x) {
    EXPECT_EQ(time_looped(interleaved, x).makespan, interleaved_with_hops(x));
  });
}

TEST(LoopedOrders, InterleavedPaysMoreForLongerHops) {
  const auto long_hop = [](Random& random, EqualStages& x) {
    x.p = draw(random, 2, 6);
    x.m = x.p * draw(random, 2, 3);
    if (x.v == 1) x.v = 2, x.f *= 2, x.i *= 2, x.w *= 2;
    const std::int64_t longest = std::min(x.f, x.i + x.w) / x.v;
    x.c = longest + draw(random, 1, longest);
  };
  for_looped_cases(3, long_hop, [](const EqualStages& x) {
    EXPECT_GT(time_looped(interleaved, x).makespan, interleaved_with_hops(x));
  });
  const EqualStages x{.p = 2, .v = 2, .m = 4, .f = 2, .i = 2, .w = 2, .c = 2};
  EXPECT_EQ(interleaved_with_hops(x), 39);
  EXPECT_EQ(time_looped(interleaved, x).makespan, 42);
}

TEST(LoopedOrders, InterleavedPaysOtherwiseForHopsWhereGroupsAreNotOfP) {
  const EqualStages uneven{.p = 2, .v = 2, .m = 3, .f = 2, .i = 2, .w = 2, .c = 1};
  EXPECT_EQ(interleaved_with_hops(uneven), 27);
  EXPECT_EQ(time_looped(interleaved, uneven).makespan, 24);
}

std::int64_t breadth_first_with_hops(const EqualStages& x) {
  return looped_makespan(x) + 2 * (x.p - 1) * x.c;
}

// Chunks hide hops as long as the last device's first result is back at the first device before
// that device has done all micro-batches of its chunk.
TEST(LoopedOrders, BreadthFirstPaysHopsAsGpipeWhileMicroBatchesCoverThem) {
  const auto short_hop = [](Random& random, EqualStages& x) {
    x.c = draw(random, 0, (x.m - x.p) * std::min(x.f, x.i + x.w) / x.v / x.p);
  };
  for_looped_cases(4, short_hop, [](const EqualStages& x) {
    EXPECT_EQ(time_looped(looped_bfs, x).makespan, breadth_first_with_hops(x));
    EXPECT_EQ(time_looped(reverse_looped_bfs, x).makespan, breadth_first_with_hops(x));
  });
  const EqualStages least{.p = 2, .v = 2, .m = 2, .f = 2, .i = 2, .w = 2, .c = 1};
  EXPECT_EQ(breadth_first_with_hops(least), 17);
  EXPECT_EQ(time_looped(looped_bfs, least).makespan, 21);
}

std::int64_t interleaved_zb_makespan(const EqualStages& x) {
  return x.m * x.t() + (x.p - 1) * std::max({x.f, x.i, x.f + x.i - x.w}) / x.v;
}

TEST(LoopedOrders, InterleavedZbDividesTheBubbleOfZbH1ByTheChunks) {
  for_looped_cases(5, as_it_is, [](const EqualStages& x) {
    EXPECT_EQ(time_looped(interleaved_zb, x).makespan, interleaved_zb_makespan(x));
  });
  const EqualStages too_few{.p = 2, .v = 2, .m = 1, .f = 2, .i = 2, .w = 2};
  EXPECT_EQ(interleaved_zb_makespan(too_few), 7);
  EXPECT_EQ(time_looped(interleaved_zb, too_few).makespan, 9);
}

// The bubbles of p = 8, m = 32 are in tenths of a percent of makespan and span alike, with unit
// times and with those of a GPT profile (four times as long, so that four chunks divide them).
TEST(LoopedOrders, BubblesAreThoseOfThePublishedTable) {
  struct Row {
    OrderGenerator make;
    std::int64_t chunks;
    long unit, gpt;
  };
  const std::vector<Row> rows{{interleaved, 2, 99, 104},
                              {interleaved, 4, 52, 63},
                              {looped_bfs, 2, 99, 101},
                              {interleaved_zb, 2, 35, 68},
                              {interleaved_zb, 4, 18, 42}};
  const auto bubble = [](const Row& row, const EqualStages& x) {
    const ReferenceTimes times = time_looped(row.make, x);
    EXPECT_EQ(times.span, times.makespan);
    return std::lround(1000.0 * static_cast<double>(times.makespan - x.m * x.t()) /
                       static_cast<double>(times.makespan));
  };
  for (const Row& row : rows) {
    EXPECT_EQ(bubble(row, {.p = 8, .v = row.chunks, .m = 32, .f = 4, .i = 4, .w = 4}), row.unit);
    EXPECT_EQ(bubble(row, {.p = 8,
                           .v = row.chunks,
                           .m = 32,
                           .f = 4 * 1855,
                           .i = 4 * 1807,
                           .w = 4 * 928,
                           .c = 4 * 31}),
              row.gpt);
  }
}

}  // namespace
}  // namespace frazil
