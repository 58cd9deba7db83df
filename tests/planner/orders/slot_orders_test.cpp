#include "planner/orders/slot_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

struct Family {
  std::string name;
  OrderGenerator make;
  int chunks;  // per direction
  Placement placement;
};
const Family kChimera{"chimera", make_chimera_order, 1, Placement::kBothWays};
const Family kBitpipe{"bitpipe", make_bitpipe_order, 2, Placement::kWaveBothWays};
const std::array<Family, 2> kFamilies{kChimera, kBitpipe};

// F takes two units; B takes as long (all of it I) or twice as long.
const StageTimes kEqual = make_times(2, 2, 0);
const StageTimes kDouble = make_times(2, 2, 2);

OrderProblem bare_problem(const Family& family, int devices, int micro_batches) {
  return make_bare_problem(devices, family.chunks, micro_batches);
}

ReferenceTimes time_problem(const Family& family, const OrderProblem& problem) {
  return time_orders(family.make(problem), problem, family.placement);
}

ReferenceTimes time_family(const Family& family, int devices, int micro_batches,
                           StageTimes device_share, Duration hop = Duration{0}) {
  return time_problem(family,
                      make_order_problem(devices, family.chunks, micro_batches, device_share, hop));
}

// Times the units of p micro-batches one after the other, without merging them.
ReferenceTimes time_apart(const Family& family, const OrderProblem& problem) {
  const int p = problem.devices;
  const DeviceOrders unit = family.make(bare_problem(family, p, p));
  DeviceOrders orders(unit.size());
  for (std::size_t device = 0; device < unit.size(); ++device) {
    for (int u = 0; u < problem.micro_batches / p; ++u) {
      for (OrderedWork work : unit[device]) {
        work.micro_batch += u * p / 2;
        orders[device].push_back(work);
      }
    }
  }
  return time_orders(orders, problem, family.placement);
}

// The form is m (tF+tB) + (p-2)/v (max(tF, tB) + (m/p - 1) |tF - tB|).
std::int64_t closed_form(const Family& family, int p, int m, const StageTimes& times) {
  const std::int64_t forward = times.forward.count();
  const std::int64_t backward = (times.backward_input + times.backward_weight).count();
  const std::int64_t wait =
      std::max(forward, backward) + (m / p - 1) * std::abs(forward - backward);
  return m * (forward + backward) + (p - 2) * wait / family.chunks;
}

struct Draw {
  int devices = 2;
  int units = 1;
  StageTimes device_share;
  Duration hop{0};
};

// Draws times that two chunks share exactly.
Draw draw_slot_case(Random& random) {
  Draw drawn;
  drawn.devices = 2 * draw(random, 1, 5);
  drawn.units = draw(random, 1, 4);
  drawn.device_share.forward = Duration{2 * draw(random, 1, 60)};
  drawn.device_share.backward_input = Duration{2 * draw(random, 0, 60)};
  drawn.device_share.backward_weight = Duration{2 * draw(random, 0, 60)};
  drawn.hop = Duration{draw(random, 0, 40)};
  return drawn;
}

TEST(SlotOrders, ChimeraPutsTheNextUnitIntoTheGapsOfTheLast) {
  EXPECT_EQ(draw_orders(make_chimera_order(bare_problem(kChimera, 4, 8))),
            "d0: 0F0 0F1 '3F0 '3B0 '3F1 '3B1 0B0 0F2 0B1 0F3 '3F2 '3B2 '3F3 '3B3 0B2 0B3\n"
            "d1: 1F0 '2F0 1F1 '2F1 '2B0 1B0 '2B1 1B1 1F2 '2F2 1F3 '2F3 '2B2 1B2 '2B3 1B3\n"
            "d2: '1F0 2F0 '1F1 2F1 2B0 '1B0 2B1 '1B1 '1F2 2F2 '1F3 2F3 2B2 '1B2 2B3 '1B3\n"
            "d3: '0F0 '0F1 3F0 3B0 3F1 3B1 '0B0 '0F2 '0B1 '0F3 3F2 3B2 3F3 3B3 '0B2 '0B3\n");
}

TEST(SlotOrders, BitpipeRunsTwoVsAgainstEachOther) {
  EXPECT_EQ(draw_orders(make_bitpipe_order(bare_problem(kBitpipe, 4, 4))),
            "d0: 0F0 0F1 '3F0 '4F0 '3F1 '4F1 7F0 7B0 7F1 7B1 '4B0 '3B0 '4B1 '3B1 0B0 0B1\n"
            "d1: 1F0 '2F0 1F1 '2F1 '5F0 6F0 '5F1 6F1 6B0 '5B0 6B1 '5B1 '2B0 1B0 '2B1 1B1\n"
            "d2: '1F0 2F0 '1F1 2F1 5F0 '6F0 5F1 '6F1 '6B0 5B0 '6B1 5B1 2B0 '1B0 2B1 '1B1\n"
            "d3: '0F0 '0F1 3F0 4F0 3F1 4F1 '7F0 '7B0 '7F1 '7B1 4B0 3B0 4B1 3B1 '0B0 '0B1\n");
}

TEST(SlotOrders, BitpipeMergesTheMiddleOfTwoUnits) {
  const DeviceOrders orders = make_bitpipe_order(bare_problem(kBitpipe, 4, 8));
  EXPECT_EQ(draw_orders({orders[0]}),
            "d0: 0F0 0F1 '3F0 '4F0 '3F1 '4F1 7F0 7B0 7F1 7B1 '4B0 '3B0 '4B1 '3B1 0B0 "
            "0F2 0B1 0F3 "
            "'3F2 '4F2 '3F3 '4F3 7F2 7B2 7F3 7B3 '4B2 '3B2 '4B3 '3B3 0B2 0B3\n");
}

TEST(SlotOrders, BitpipeWarmsUpWithOneAndAHalfPForwardsAndSomeInTheMiddle) {
  for (int p = 2; p <= 16; p += 2) {
    const DeviceOrders orders = make_bitpipe_order(bare_problem(kBitpipe, p, p));
    for (int r = 0; r < p; ++r) {
      const DeviceOrder& order = orders[static_cast<std::size_t>(r)];
      const auto backward = std::find_if(order.begin(), order.end(), [](const OrderedWork& work) {
        return work.kind == ActionKind::kBackward;
      });
      // The last of the forwards before it is that of the first pair.
      EXPECT_EQ(backward - order.begin(), p + p / 2 + std::min(r, p - 1 - r) + 1);
    }
  }
}

// time_orders throws where work is missing, doubled, misplaced or stuck.
TEST(SlotOrders, AllWorkIsDoneInTurn) {
  for (const Family& family : kFamilies) {
    for (int p = 2; p <= 16; p += 2) {
      for (int m = p; m <= 5 * p; m += p) {
        SCOPED_TRACE(fmt::format("{} p = {} m = {}", family.name, p, m));
        EXPECT_NO_THROW(time_family(family, p, m, kDouble, Duration{1}));
        EXPECT_EQ(find_out_of_turn(family.make(bare_problem(family, p, m))), "");
      }
    }
  }
}

TEST(SlotOrders, TheTwoDirectionsMirrorEachOther) {
  for (const Family& family : kFamilies) {
    const DeviceOrders orders = family.make(bare_problem(family, 6, 12));
    DeviceOrders mirrored(orders.rbegin(), orders.rend());
    for (DeviceOrder& order : mirrored) {
      for (OrderedWork& work : order) work.direction = work.direction == 0 ? 1 : 0;
    }
    EXPECT_EQ(mirrored, orders) << family.name;
  }
}

TEST(SlotOrders, TheMakespanOfAllTimesHasAClosedForm) {
  constexpr std::uint64_t kSeed = 210706925;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  Random random(kSeed);
  for (int i = 0; i < 600; ++i) {
    const Draw draw = draw_slot_case(random);
    for (const Family& family : kFamilies) {
      const int p = draw.devices;
      const int m = draw.units * p;
      SCOPED_TRACE(fmt::format("{} p = {} m = {} draw {}", family.name, p, m, i));
      const ReferenceTimes times = time_family(family, p, m, draw.device_share);
      EXPECT_EQ(times.makespan, closed_form(family, p, m, draw.device_share));
      EXPECT_EQ(times.span, times.makespan);
    }
  }
}

TEST(SlotOrders, WithTimesForMessagesTheClosedFormIsTooShort) {
  for (const Family& family : kFamilies) {
    EXPECT_GT(time_family(family, 4, 8, kDouble, Duration{1}).makespan,
              closed_form(family, 4, 8, kDouble));
  }
}

TEST(SlotOrders, MergedUnitsAreNeverSlowerThanUnitsApart) {
  constexpr std::uint64_t kSeed = 241019367;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  Random random(kSeed);
  for (int i = 0; i < 600; ++i) {
    const Draw draw = draw_slot_case(random);
    for (const Family& family : kFamilies) {
      const int p = draw.devices;
      SCOPED_TRACE(fmt::format("{} p = {} units {} draw {}", family.name, p, draw.units, i));
      OrderProblem problem =
          make_order_problem(p, family.chunks, draw.units * p, draw.device_share, draw.hop);
      for (StageTimes& times : problem.times) times = draw_slot_case(random).device_share;
      const ReferenceTimes merged = time_problem(family, problem);
      const ReferenceTimes apart = time_apart(family, problem);
      EXPECT_LE(merged.makespan, apart.makespan);
      EXPECT_LE(merged.span, apart.span);
    }
  }
}

TEST(SlotOrders, OnEqualDevicesMergingSavesTheShorterPassOfPMinus2ChunksPerUnit) {
  constexpr std::uint64_t kSeed = 19367;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  Random random(kSeed);
  for (int i = 0; i < 500; ++i) {
    const Draw draw = draw_slot_case(random);
    const StageTimes& times = draw.device_share;
    for (const Family& family : kFamilies) {
      const int p = draw.devices;
      SCOPED_TRACE(fmt::format("{} p = {} units {} draw {}", family.name, p, draw.units, i));
      const OrderProblem problem =
          make_order_problem(p, family.chunks, draw.units * p, times, Duration{0});
      const Duration shorter =
          std::min(times.forward, times.backward_input + times.backward_weight);
      EXPECT_EQ(time_apart(family, problem).makespan - time_problem(family, problem).makespan,
                (draw.units - 1) * (p - 2) * shorter.count() / family.chunks);
    }
  }
}

// Times are in units of tF = 1, as published.
TEST(SlotOrders, ChimeraTakes2MPlusPMinus2WhereABackwardTakesAsLongAsAForward) {
  for (int p = 2; p <= 16; p += 2) {
    for (int m = p; m <= 4 * p; m += p) {
      EXPECT_EQ(time_family(kChimera, p, m, kEqual).makespan, 2 * (2 * m + p - 2));
      // The form does not hold where a backward takes twice as long.
      EXPECT_GT(time_family(kChimera, p, m, kDouble).makespan, 2 * (2 * m + p - 2));
    }
  }
}

TEST(SlotOrders, ChimeraTakes3MPlus2PMinus4ForOneUnitWhereABackwardTakesTwice) {
  for (int p = 2; p <= 16; p += 2) {
    EXPECT_EQ(time_family(kChimera, p, p, kDouble).makespan, 2 * (3 * p + 2 * (p - 2)));
    for (int m = p; m <= 4 * p; m += p) {
      EXPECT_EQ(time_family(kChimera, p, m, kDouble).makespan, 2 * (3 * m + (p - 2) * (1 + m / p)));
    }
  }
  EXPECT_EQ(time_family(kChimera, 4, 8, kDouble).makespan, 2 * 30);
  // Two units take longer than the form of one unit says.
  EXPECT_GT(time_family(kChimera, 4, 8, kDouble).makespan, 2 * (3 * 8 + 2 * (4 - 2)));
}

TEST(SlotOrders, BitpipesPublishedBubbles) {
  for (int p = 2; p <= 16; p += 2) {
    const auto bubble_is = [&](int m, StageTimes times, std::int64_t above, std::int64_t below) {
      const std::int64_t makespan = time_family(kBitpipe, p, m, times).makespan;
      return (makespan - (m * times.total()).count()) * below == above * makespan;
    };
    EXPECT_TRUE(bubble_is(p, kDouble, p - 2, 3 * p + p - 2)) << p;
    EXPECT_TRUE(bubble_is(p, kEqual, p - 2, 4 * p + p - 2)) << p;
    // The second form holds for any number of units, the first for one only.
    EXPECT_TRUE(bubble_is(3 * p, kEqual, p - 2, 4 * 3 * p + p - 2)) << p;
    EXPECT_EQ(bubble_is(3 * p, kDouble, p - 2, 3 * 3 * p + p - 2), p == 2) << p;
  }
  EXPECT_EQ(time_family(kBitpipe, 4, 4, kDouble).makespan, 2 * 14);
}

TEST(SlotOrders, MiddleDevicesHoldMost) {
  for (const Family& family : kFamilies) {
    for (int p = 2; p <= 16; p += 2) {
      for (const int m : {p, 3 * p}) {
        std::vector<int> expected;
        for (int r = 0; r < p; ++r) {
          expected.push_back(family.chunks * p - p / 2 + 1 + std::min(r, p - 1 - r));
        }
        EXPECT_EQ(time_family(family, p, m, kDouble).peak_chunks, expected)
            << family.name << " p = " << p << " m = " << m;
      }
    }
  }
  // Devices hold p/2+1 .. p micro-batches. In BitPipe a chunk is half of a micro-batch: 3.5 .. 4
  // and 6.5 .. 8.
  using Peaks = std::vector<int>;
  EXPECT_EQ(time_family(kChimera, 8, 32, kDouble).peak_chunks, (Peaks{5, 6, 7, 8, 8, 7, 6, 5}));
  EXPECT_EQ(time_family(kBitpipe, 4, 4, kDouble).peak_chunks, (Peaks{7, 8, 8, 7}));
  EXPECT_EQ(time_family(kBitpipe, 8, 8, kDouble).peak_chunks,
            (Peaks{13, 14, 15, 16, 16, 15, 14, 13}));
}

// The rows hold bubbles in percent and the most micro-batches held; (tF, tB, tW, c) are (1, 1, 1,
// 0) and those of a GPT-3 profile.
TEST(SlotOrders, ChimeraInTheLeagueTableOfEightDevicesAnd32MicroBatches) {
  const auto expect_row = [](StageTimes device_share, Duration hop, const std::string& bubble) {
    const ReferenceTimes times = time_family(kChimera, 8, 32, device_share, hop);
    EXPECT_EQ(idle_percent(times.makespan, 32 * device_share.total()), bubble);
    EXPECT_EQ(idle_percent(times.span, 32 * device_share.total()), bubble);
    EXPECT_EQ(most(times.peak_chunks), 8);
  };
  expect_row(make_times(1, 1, 1), Duration{0}, "23.8");
  expect_row(make_times(1855, 1807, 928), Duration{31}, "18.8");
}

TEST(SlotOrders, RefusesWhatItCannotBe) {
  OrderProblem problem = bare_problem(kChimera, 4, 8);
  problem.chunks = 2;
  EXPECT_EQ(refusal(kChimera.make, problem), "chimera has 1 chunk per device and direction, not 2");
  problem.chunks = 1;
  EXPECT_EQ(refusal(kBitpipe.make, problem),
            "bitpipe has 2 chunks per device and direction, not 1");
  for (const Family& family : kFamilies) {
    EXPECT_EQ(refusal(family.make, bare_problem(family, 5, 10)),
              family.name + " takes an even number of devices, not 5");
    EXPECT_EQ(refusal(family.make, bare_problem(family, 4, 10)),
              family.name + " over 4 devices takes a multiple of 4 micro-batches, not 10");
    problem = bare_problem(family, 4, 8);
    problem.in_flight = 3;
    EXPECT_EQ(refusal(family.make, problem),
              family.name + " holds what its slots need; in-flight 3 is not defined for it");
  }
}

}  // namespace
}  // namespace frazil
