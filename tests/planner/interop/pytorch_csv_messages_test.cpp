// Checks by rules of its own that the messages of exported schedules suit a transport without tags:
// any two ranks send and receive in one order, and do not wait for each other.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/actions/message_order.h"
#include "planner/interop/pytorch_csv.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "tests/planner/interop/pytorch_schedules.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using enum PytorchDialect;

// Names a message, such as "F of 1 to stage 2" for micro-batch 1 between neighbours.
std::string name_message(const Action& action) {
  const bool sends =
      action.kind == ActionKind::kSendForward || action.kind == ActionKind::kSendBackward;
  const bool forward =
      action.kind == ActionKind::kSendForward || action.kind == ActionKind::kReceiveForward;
  const int reader = action.stage.value + (sends ? (forward ? 1 : -1) : 0);
  return fmt::format("{} of {} to stage {}", forward ? "F" : "B", action.micro_batches->first.value,
                     reader);
}

bool is_send(const Action& action) {
  return action.kind == ActionKind::kSendForward || action.kind == ActionKind::kSendBackward;
}

// Lists the names of messages by (sender, receiver), in the order in which they are sent or
// received.
std::map<std::pair<std::size_t, std::size_t>, std::vector<std::string>> list_messages(
    const Schedule& rows, bool sent) {
  std::map<std::string, std::size_t> receiver;
  std::map<std::string, std::size_t> sender;
  for (std::size_t rank = 0; rank < rows.devices.size(); ++rank) {
    for (const Action& action : rows.devices[rank]) {
      if (takes_peer(action.kind))
        (is_send(action) ? sender : receiver)[name_message(action)] = rank;
    }
  }
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::string>> lists;
  for (const std::vector<Action>& row : rows.devices) {
    for (const Action& action : row) {
      if (!takes_peer(action.kind) || is_send(action) != sent) continue;
      const std::string name = name_message(action);
      lists[{sender.at(name), receiver.at(name)}].push_back(name);
    }
  }
  return lists;
}

// Takes both ends of a message as one event and the events of a rank in their order, and returns
// true if that order has no cycle.
bool one_order_suits_all(const Schedule& rows) {
  std::map<std::string, std::set<std::string>> after;
  std::map<std::string, int> open;  // events that must come first
  for (const std::vector<Action>& row : rows.devices) {
    std::string last;
    for (const Action& action : row) {
      if (!takes_peer(action.kind)) continue;
      const std::string name = name_message(action);
      open.emplace(name, 0);
      if (!last.empty() && after[last].insert(name).second) ++open[name];
      last = name;
    }
  }
  std::vector<std::string> ready;
  for (const auto& [name, count] : open) {
    if (count == 0) ready.push_back(name);
  }
  std::size_t done = 0;
  for (; !ready.empty(); ++done) {
    const std::string name = ready.back();
    ready.pop_back();
    for (const std::string& next : after[name]) {
      if (--open[next] == 0) ready.push_back(next);
    }
  }
  return done == open.size();
}

void expect_good_messages(const Schedule& rows) {
  EXPECT_EQ(list_messages(rows, true), list_messages(rows, false));
  EXPECT_TRUE(one_order_suits_all(rows)) << to_text(rows);
  EXPECT_TRUE(run_in_lockstep(rows)) << to_text(rows);
}

TEST(PytorchCsv, MessagesOfEverySayableScheduleSuitATransportWithoutTags) {
  int moved = 0;
  for_each_expressible([&](const WhatIfInputs& inputs, const ScheduleFacts&) {
    const Schedule completed = completed_of(inputs);
    moved += run_in_lockstep(completed) ? 0 : 1;
    expect_good_messages(
        parse_pytorch_csv(only_csv(completed, kComputeComms), "export.csv").schedule);
  });
  EXPECT_GT(moved, 50);  // many would deadlock as they stand
}

struct RandomCase {
  Plan plan;
  ModelProfile profile;
  int devices = 1;
  Schedule compute;
};

// Draws any stage on any device, forwards in order, backwards in any order that the stages allow.
RandomCase make_random_case(std::mt19937_64& random) {
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  RandomCase made;
  made.devices = draw(1, 4);
  const int stages = made.devices + draw(0, 5);
  const int m = draw(1, 6);
  std::vector<LayerId> cuts;
  std::vector<DeviceId> places;
  for (int s = 0; s < stages; ++s) {
    if (s > 0) cuts.emplace_back(s + 1);  // stage 0 has two layers, so that it has an I
    places.emplace_back(s < made.devices ? s : draw(0, made.devices - 1));
  }
  std::shuffle(places.begin(), places.end(), random);
  made.profile = make_chain(stages + 1, milliseconds{1}, milliseconds{1}, milliseconds{1});
  made.plan.batch_size = m;
  made.plan.mask = FreezeMask::all_active(stages + 1);
  made.plan.pipelines = {
      make_pipeline(stages + 1, cuts, places, {MicroBatchId{0}, MicroBatchId{m - 1}})};
  made.compute.devices.resize(static_cast<std::size_t>(made.devices));
  // Each round draws one stage and one of the works that could come next on it.
  std::vector<int> forwards(static_cast<std::size_t>(stages), 0);
  std::vector<std::vector<int>> to_come(static_cast<std::size_t>(stages));  // backwards, weights
  for (int left = stages * m * 3; left > 0;) {
    const int s = draw(0, stages - 1);
    const auto at = static_cast<std::size_t>(s);
    std::vector<Action>& list = made.compute.devices[places[at].index()];
    const auto put = [&](ActionKind kind, int mb) {
      list.push_back(make_action(PipelineId{}, StageId{s}, kind, MicroBatchId{mb}));
      --left;
    };
    const bool has_input = s == 0 ? forwards[at] < m : forwards[at] < forwards[at - 1];
    if (has_input && (forwards[at] == 0 || draw(0, 1) == 0)) {
      put(ActionKind::kForward, forwards[at]);
      if (s + 1 == stages) to_come[at].push_back(forwards[at]);
      ++forwards[at];
    } else if (!to_come[at].empty()) {
      std::swap(
          to_come[at].back(),
          to_come[at][static_cast<std::size_t>(draw(0, static_cast<int>(to_come[at].size()) - 1))]);
      const int next = to_come[at].back();
      to_come[at].pop_back();
      if (next < 0) {
        put(ActionKind::kBackwardWeight, -1 - next);
        continue;
      }
      put(ActionKind::kBackwardInput, next);
      to_come[at].push_back(-1 - next);
      if (s > 0) to_come[at - 1].push_back(next);
    }
  }
  return made;
}

TEST(PytorchCsv, RandomOrdersOnRandomPlacesGetMessagesThatSuit) {
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const RandomCase made = make_random_case(random);
    const Schedule completed = complete_schedule(made.compute, made.plan, made.profile,
                                                 find_activity(made.profile, made.plan.mask));
    moved += run_in_lockstep(completed) ? 0 : 1;
    const std::string text = only_csv(completed, kComputeComms);
    const PytorchSchedule imported = parse_pytorch_csv(text, "random.csv");
    expect_good_messages(imported.schedule);
    EXPECT_EQ(only_csv(imported.schedule, kComputeComms), text);
    // Ranks stand in the order of the stages, the lists in that of the devices.
    const auto& stages = made.plan.pipelines[0].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      EXPECT_EQ(to_explicit_schedule(imported, made.devices)
                    .devices.at(imported.shape.rank_of_stage[s].index()),
                made.compute.devices.at(stages[s].devices[0].index()));
    }
  }
  EXPECT_GT(moved, 100);
}

TEST(PytorchCsv, ListsThatWaitForEachOtherAreRefused) {
  const Schedule schedule = parse_schedule(
      "d0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 2RECV_F0 2F0 2SEND_B0 2B0 2RECV_F1 "
      "2F1 2B1 2SEND_B1\n"
      "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1SEND_B0 1RECV_B1 1B1 "
      "1SEND_B1\n",
      "test");
  const std::string sentence =
      "the lists of the devices wait for each other: device 0 stands at 0B0 and waits for "
      "0RECV_B0, device 1 stands at 1B0 and waits for 1RECV_B0";
  try {
    order_receives(schedule);
    ADD_FAILURE() << "accepted";
  } catch (const InfeasibleError& error) {
    EXPECT_EQ(std::string(error.what()), sentence);
  }
}

}  // namespace
}  // namespace frazil
