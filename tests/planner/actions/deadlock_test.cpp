#include "planner/actions/deadlock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "planner/actions/message_order.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "tests/planner/support/parse_schedule.h"

namespace frazil {
namespace {

std::string verdict(const std::string& lists, MessageLowering lowering) {
  return find_deadlock(parse_schedule(lists, "text"), lowering).value_or("comes through");
}

Schedule complete(ScheduleKind kind, int stages, int micro_batches) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = kind;
  what_if.forward = what_if.backward_input = what_if.backward_weight = {Duration{1000}};
  const WhatIfInputs inputs = make_what_if(what_if);
  const Setting setting{inputs.profile, inputs.cluster};
  return complete_schedule(make_schedule(inputs.plan, stages, setting), inputs.plan, inputs.profile,
                           find_activity(inputs.profile, inputs.plan.mask));
}

TEST(Deadlock, GpipeComesThroughHoweverItsMessagesAreHandedOver) {
  const Schedule gpipe = complete(ScheduleKind::kGpipe, 4, 6);
  for (const auto lowering :
       {MessageLowering::kEagerReceive, MessageLowering::kJustInTime, MessageLowering::kGrouped}) {
    EXPECT_EQ(find_deadlock(gpipe, lowering), std::nullopt) << message_lowering_name(lowering);
  }
}

// A forward goes down and a backward comes up, and both neighbours want to send first.
TEST(Deadlock, BlockingCallsStopOneForwardOneBackwardAndTheSentenceNamesBoth) {
  const Schedule schedule = complete(ScheduleKind::kOneForwardOneBackward, 2, 4);
  EXPECT_EQ(find_deadlock(schedule, MessageLowering::kJustInTime),
            "device 0 waits at 0SEND_F1 for 1RECV_F1, but device 1 waits at 1SEND_B0");
  EXPECT_EQ(find_deadlock(schedule, MessageLowering::kGrouped), std::nullopt);
  EXPECT_EQ(find_deadlock(schedule, MessageLowering::kEagerReceive), std::nullopt);
}

TEST(Deadlock, WithoutTagsMessagesThatMeetMustBeTheSame) {
  const std::string lists =
      "d0: 0F0 0SEND_F0 0F1 0SEND_F1\n"
      "d1: 1RECV_F1 1F1 1RECV_F0 1F0\n";
  EXPECT_EQ(verdict(lists, MessageLowering::kEagerReceive),
            "0SEND_F0 of device 0 would meet 1RECV_F1 of device 1");
  EXPECT_EQ(verdict(lists, MessageLowering::kJustInTime),
            "device 0 waits at 0SEND_F0 for 1RECV_F0, but device 1 waits at 1RECV_F1");
  EXPECT_EQ(verdict(lists, MessageLowering::kGrouped),
            "device 0 waits at 0SEND_F0 for 1RECV_F0, but device 1 waits at 1RECV_F1");
}

TEST(Deadlock, AMessageWithoutItsOtherEndIsNamed) {
  EXPECT_EQ(verdict("d0: 0F0 0SEND_F0\nd1: 1F0\n", MessageLowering::kJustInTime),
            "device 0 waits at 0SEND_F0 for 1RECV_F0, which is on no list");
  EXPECT_EQ(verdict("d0: 0F0\nd1: 1RECV_F0 1F0\n", MessageLowering::kEagerReceive),
            "device 1 waits at 1RECV_F0 for 0SEND_F0, which is on no list");
}

TEST(Deadlock, NeighboursOnAListAreHandedOverTogether) {
  const std::string facing =
      "d0: 0SEND_F0 0RECV_B0\n"
      "d1: 1SEND_B0 1RECV_F0\n";
  EXPECT_EQ(verdict(facing, MessageLowering::kGrouped), "comes through");
  const std::string apart =
      "d0: 0SEND_F0 0F1 0RECV_B0\n"
      "d1: 1SEND_B0 1F1 1RECV_F0\n";
  EXPECT_EQ(verdict(apart, MessageLowering::kGrouped),
            "device 0 waits at 0SEND_F0 for 1RECV_F0, but device 1 waits at 1SEND_B0");
}

TEST(Deadlock, ReceivesInTheOrderOfOneRunComeThroughEveryWay) {
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(schedule_name(facts.kind));
    for (const int stages : {2, 4}) {
      const Schedule ordered = order_receives(complete(facts.kind, stages, 2 * stages));
      for (const auto lowering : {MessageLowering::kEagerReceive, MessageLowering::kJustInTime,
                                  MessageLowering::kGrouped}) {
        EXPECT_EQ(find_deadlock(ordered, lowering), std::nullopt)
            << message_lowering_name(lowering) << "\n"
            << to_text(ordered);
      }
    }
  }
}

// This is an independent reference for blocking calls: any two ends of a message that are both next
// on their lists may meet. Which message goes first never matters, so a random walk ends where
// every walk does.
bool walk_just_in_time(const Schedule& schedule, std::mt19937_64& random) {
  std::vector<std::vector<std::string>> left(schedule.devices.size());
  for (std::size_t d = 0; d < left.size(); ++d) {
    for (const Action& action : schedule.devices[d]) {
      const std::string text = to_text(action);
      if (text.find("SEND") != std::string::npos || text.find("RECV") != std::string::npos) {
        left[d].insert(left[d].begin(), text);
      }
    }
  }
  const auto meets = [](const std::string& a, const std::string& b) {
    for (const char* way : {"F", "B"}) {
      const auto send = a.find(std::string("SEND_") + way);
      const auto receive = b.find(std::string("RECV_") + way);
      if (send == std::string::npos || receive == std::string::npos) continue;
      const int from = std::stoi(a), to = std::stoi(b);
      return a.substr(send + 6) == b.substr(receive + 6) && to == from + (*way == 'F' ? 1 : -1);
    }
    return false;
  };
  for (;;) {
    std::vector<std::pair<std::size_t, std::size_t>> able;
    for (std::size_t a = 0; a < left.size(); ++a) {
      for (std::size_t b = 0; b < left.size(); ++b) {
        if (a == b || left[a].empty() || left[b].empty()) continue;
        if (meets(left[a].back(), left[b].back())) able.emplace_back(a, b);
      }
    }
    if (able.empty()) break;
    const auto [a, b] = able[random() % able.size()];
    left[a].pop_back();
    left[b].pop_back();
  }
  return std::all_of(left.begin(), left.end(), [](const auto& list) { return list.empty(); });
}

TEST(Deadlock, BlockingCallsStopExactlyWhereARandomWalkDoes) {
  int stopped = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto kind = std::array{ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                 ScheduleKind::kZbH1}[random() % 3];
    Schedule schedule =
        complete(kind, 2 + static_cast<int>(random() % 3), 1 + static_cast<int>(random() % 4));
    if (seed % 2 == 0) schedule = order_receives(schedule);
    if (seed % 4 == 0) {
      std::vector<Action>& list = schedule.devices[random() % schedule.devices.size()];
      std::swap(list[random() % list.size()], list[random() % list.size()]);
    }
    const bool walks = walk_just_in_time(schedule, random);
    stopped += walks ? 0 : 1;
    EXPECT_EQ(!find_deadlock(schedule, MessageLowering::kJustInTime), walks) << to_text(schedule);
  }
  EXPECT_GT(stopped, 20);
  EXPECT_LT(stopped, 280);
}

}  // namespace
}  // namespace frazil
