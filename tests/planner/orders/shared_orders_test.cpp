#include "planner/orders/shared_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "planner/actions/deadlock.h"
#include "planner/actions/message_order.h"
#include "planner/actions/schedule_check.h"
#include "planner/orders/make_orders.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

// Returns all schedules that take stages on several devices.
std::vector<ScheduleKind> list_kinds() {
  std::vector<ScheduleKind> kinds;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.takes_shared_stages) kinds.push_back(facts.kind);
  }
  return kinds;
}

std::string draw_shared(const std::vector<int>& devices, int micro_batches,
                        NamedSchedule schedule) {
  return to_text(
      make_schedule(make_shared_plan(devices, 1, micro_batches, schedule), count(devices)));
}

TEST(SharedOrders, TwoAndOneDevicesHaveThreeMicroBatchesUnderWay) {
  EXPECT_EQ(draw_shared({2, 1}, 6, {}),
            "d0: 0F0 0F2 0B0 0F4 0B2 0B4\n"
            "d1: 0F1 0F3 0B1 0F5 0B3 0B5\n"
            "d2: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1F5 1B5\n");
}

TEST(SharedOrders, TwoAndTwoDevicesAreTwoPipelinesInOne) {
  EXPECT_EQ(draw_shared({2, 2}, 6, {}),
            "d0: 0F0 0F2 0B0 0F4 0B2 0B4\n"
            "d1: 0F1 0F3 0B1 0F5 0B3 0B5\n"
            "d2: 1F0 1B0 1F2 1B2 1F4 1B4\n"
            "d3: 1F1 1B1 1F3 1B3 1F5 1B5\n");
}

TEST(SharedOrders, OneTwoOneDevicesAndOneDeviceTooMany) {
  EXPECT_EQ(draw_shared({1, 2, 1}, 5, {}),
            "d0: 0F0 0F1 0F2 0F3 0B0 0F4 0B1 0B2 0B3 0B4\n"
            "d1: 1F0 1F2 1B0 1F4 1B2 1B4\n"
            "d2: 1F1 1F3 1B1 1B3\n"
            "d3: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4\n");
  EXPECT_EQ(draw_shared({3, 1}, 2, {}), "d0: 0F0 0B0\nd1: 0F1 0B1\nd2:\nd3: 1F0 1B0 1F1 1B1\n");
}

TEST(SharedOrders, EagerHidesTransfersAndZbH1DelaysWWhereItsStageHasRoom) {
  EXPECT_EQ(draw_shared({1, 2}, 4, {.kind = ScheduleKind::kEagerOneForwardOneBackward}),
            "d0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"
            "d1: 1F0 1B0 1F2 1B2\n"
            "d2: 1F1 1B1 1F3 1B3\n");
  EXPECT_EQ(draw_shared({2, 1}, 4, {.kind = ScheduleKind::kZbH1}),
            "d0: 0F0 0F2 0I0 0W0 0I2 0W2\n"
            "d1: 0F1 0F3 0I1 0W1 0I3 0W3\n"
            "d2: 1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3\n");
}

TEST(SharedOrders, GpipeTakesStagesThatShareDevicesAsTheyLie) {
  Plan plan = make_shared_plan({2, 2}, 1, 3, {.kind = ScheduleKind::kGpipe});
  plan.pipelines[0].stages[1].devices = {DeviceId{1}, DeviceId{0}};
  EXPECT_EQ(to_text(make_schedule(plan, 2)),
            "d0: 0F0 0F2 1F1 1B1 0B0 0B2\n"
            "d1: 0F1 1F0 1F2 1B0 1B2 0B1\n");
}

// The middle stage must not wait for a second round if 2 micro-batches are in flight.
TEST(SharedOrders, AFewMicroBatchesInFlightCutTheForwardsOfAWideStage) {
  EXPECT_EQ(draw_shared({1, 5, 1}, 7, {.in_flight = 2}),
            "d0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0F5 0B4 0F6 0B5 0B6\n"
            "d1: 1F0 1B0 1F5 1B5\n"
            "d2: 1F1 1B1 1F6 1B6\n"
            "d3: 1F2 1B2\n"
            "d4: 1F3 1B3\n"
            "d5: 1F4 1B4\n"
            "d6: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2F6 2B6\n");
}

TEST(SharedOrders, WithOneDevicePerStageAreTheOrdersOfTheMenu) {
  const std::vector<ScheduleKind> kinds = list_kinds();
  EXPECT_GE(kinds.size(), 4U);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    OrderProblem problem;
    problem.devices = static_cast<int>(random() % 7) + 1;
    problem.micro_batches = static_cast<int>(random() % 20) + 1;
    std::vector<StagePlaces> places;
    for (int s = 0; s < problem.devices; ++s) places.push_back({.devices = {s}});
    for (const ScheduleKind kind : kinds) {
      problem.in_flight.reset();
      EXPECT_EQ(make_shared_orders(kind, problem, places), make_orders(kind, problem));
      if (kind == ScheduleKind::kGpipe) continue;
      problem.in_flight = static_cast<int>(random() % 16) + 1;
      EXPECT_EQ(make_shared_orders(kind, problem, places), make_orders(kind, problem))
          << schedule_name(kind) << " with " << *problem.in_flight;
    }
  }
}

int forwards_first(const std::vector<Action>& list) {
  const auto first = std::find_if(list.begin(), list.end(), [](const Action& action) {
    return action.kind != ActionKind::kForward;
  });
  return static_cast<int>(first - list.begin());
}

struct Drawn {
  std::vector<int> devices;
  int micro_batches = 1;
  NamedSchedule schedule;
};

Drawn draw_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Drawn drawn;
  const auto stages = random() % 4 + 1;
  for (std::size_t s = 0; s < stages; ++s)
    drawn.devices.push_back(static_cast<int>(random() % 4) + 1);
  drawn.micro_batches = static_cast<int>(random() % 12) + 1;
  const std::vector<ScheduleKind> kinds = list_kinds();
  drawn.schedule.kind = kinds[random() % kinds.size()];
  if (drawn.schedule.kind != ScheduleKind::kGpipe && random() % 2 == 0) {
    drawn.schedule.in_flight = static_cast<int>(random() % 8) + 1;
  }
  return drawn;
}

TEST(SharedOrders, DrawnStagesComeThroughHoweverTheirMessagesAreHandedOver) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Drawn drawn = draw_problem(seed);
    const Plan plan = make_shared_plan(drawn.devices, 1, drawn.micro_batches, drawn.schedule);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(plan));
    const ModelProfile profile = make_chain(static_cast<int>(drawn.devices.size()), nanoseconds(1),
                                            nanoseconds(1), nanoseconds(1));
    const Activity activity = find_activity(profile, plan.mask);
    const Schedule made = make_schedule(plan, count(drawn.devices));
    ASSERT_NO_THROW(validate_schedule(made, plan, activity, "schedule"));
    const Schedule completed = complete_schedule(made, plan, profile, activity);
    ASSERT_EQ(find_deadlock(completed, MessageLowering::kEagerReceive), std::nullopt);
    Schedule ordered;
    ASSERT_NO_THROW(ordered = order_receives(completed)) << to_text(completed);
    for (const auto lowering : {MessageLowering::kEagerReceive, MessageLowering::kJustInTime,
                                MessageLowering::kGrouped}) {
      ASSERT_EQ(find_deadlock(ordered, lowering), std::nullopt) << to_text(ordered);
    }
  }
}

TEST(SharedOrders, GpipeComesThroughWhereverItsStagesLie) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto stages = random() % 4 + 1;
    Plan plan = make_shared_plan(std::vector<int>(stages, 1), 1, static_cast<int>(random() % 9) + 1,
                                 {.kind = ScheduleKind::kGpipe});
    std::vector<DeviceId> all{DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}};
    for (Stage& stage : plan.pipelines[0].stages) {
      std::shuffle(all.begin(), all.end(), random);
      stage.devices.assign(all.begin(), all.begin() + 1 + static_cast<int>(random() % 4));
    }
    const ModelProfile profile =
        make_chain(static_cast<int>(stages), nanoseconds(1), nanoseconds(1), nanoseconds(1));
    const Activity activity = find_activity(profile, plan.mask);
    const Schedule made = make_schedule(plan, 4);
    ASSERT_NO_THROW(validate_schedule(made, plan, activity, "schedule"));
    const Schedule completed = complete_schedule(made, plan, profile, activity);
    ASSERT_EQ(find_deadlock(completed, MessageLowering::kEagerReceive), std::nullopt);
    ASSERT_NO_THROW(order_receives(completed)) << to_text(completed);
  }
}

TEST(SharedOrders, OneForwardOneBackwardBeginsWithPipeDreamsNumberOfActiveMicroBatches) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Drawn drawn = draw_problem(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Plan plan = make_shared_plan(drawn.devices, 1, drawn.micro_batches, {});
    const Schedule made = make_schedule(plan, count(drawn.devices));
    int device = 0;
    for (std::size_t s = 0; s < drawn.devices.size(); ++s) {
      int from_here = 0;
      for (std::size_t t = s; t < drawn.devices.size(); ++t) from_here += drawn.devices[t];
      for (int turn = 0; turn < drawn.devices[s]; ++turn, ++device) {
        int own = 0;
        for (int m = turn; m < drawn.micro_batches; m += drawn.devices[s]) ++own;
        int wanted = 0;
        while (wanted * drawn.devices[s] < from_here) ++wanted;
        EXPECT_EQ(forwards_first(made.devices[static_cast<std::size_t>(device)]),
                  std::min(wanted, own));
      }
    }
  }
}

}  // namespace
}  // namespace frazil
