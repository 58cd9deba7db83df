#include "planner/actions/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/planner/support/shared_plans.h"
#include "tests/support/golden.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

ModelProfile chain(int layers) {
  return make_chain(layers, milliseconds{1}, milliseconds{1}, milliseconds{1});
}

Plan plan_of(const std::string& mask, int micro_batches, std::vector<Pipeline> pipelines) {
  Plan plan;
  plan.batch_size = micro_batches;
  plan.mask = FreezeMask::parse(mask, "test", 1);
  plan.pipelines = std::move(pipelines);
  plan.schedule = NamedSchedule{};
  return plan;
}

std::string complete(const Plan& plan, const ModelProfile& profile, int devices,
                     bool clip = false) {
  return to_text(complete_schedule(make_schedule(plan, devices), plan, profile,
                                   find_activity(profile, plan.mask), clip));
}

Pipeline three_stages(int micro_batches) {
  return make_pipeline(6, {LayerId{2}, LayerId{4}}, {DeviceId{0}, DeviceId{1}, DeviceId{2}},
                       interval(0, micro_batches - 1));
}

TEST(Schedule, TextRoundTrips) {
  const std::string text =
      "d0: 0F0 0F1-3 1:2I0 1:2W0.1\n"
      "d1:\n"
      "d2: (2F1;2B0)OVERLAP_F_B 2SEND_F0>5 2U BARRIER 2MOVE(parameters[0-3]@1 d0>host)\n";
  EXPECT_EQ(to_text(parse_schedule(text, "schedule.txt")), text);
  EXPECT_EQ(parse_schedule(text, "schedule.txt").devices[2].size(), 5U);
  EXPECT_TRUE(parse_schedule("", "schedule.txt").devices.empty());
}

TEST(Schedule, BadTextIsNamedWithItsLine) {
  for (const auto& [text, line] : {std::pair{"d0: 0F0\nd2: 0B0\n", 2},
                                   {"d0: 0F0\n\n", 2},
                                   {"0F0\n", 1},
                                   {"d0: 0F0\nd1: 0X0\n", 2},
                                   {"d0: (0F0\n", 1}}) {
    SCOPED_TRACE(text);
    try {
      parse_schedule(text, "schedule.txt");
      ADD_FAILURE() << "accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "schedule.txt");
      EXPECT_EQ(error.line(), line);
    }
  }
}

TEST(Schedule, SendsFollowAndReceivesPrecedeTheComputeActions) {
  EXPECT_EQ(complete(plan_of("111111", 1, {three_stages(1)}), chain(6), 3),
            "d0: 0F0 0SEND_F0 0RECV_B0 0B0 0U\n"
            "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1U\n"
            "d2: 2RECV_F0 2F0 2B0 2SEND_B0 2U\n");
}

TEST(Schedule, TwoReplicasOfTwoStagesReduceTheirGradients) {
  const Plan plan =
      plan_of("1111", 4,
              {make_pipeline(4, {LayerId{2}}, {DeviceId{0}, DeviceId{1}}, interval(0, 1)),
               make_pipeline(4, {LayerId{2}}, {DeviceId{2}, DeviceId{3}}, interval(2, 3))});
  EXPECT_TRUE(matches_golden("planner/completed_two_by_two.txt", complete(plan, chain(4), 4)));
}

TEST(Schedule, FrozenStagesOnlyGoForward) {
  EXPECT_EQ(complete(plan_of("001111", 1, {three_stages(1)}), chain(6), 3),
            "d0: 0F0 0SEND_F0\n"
            "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1U\n"
            "d2: 2RECV_F0 2F0 2B0 2SEND_B0 2U\n");
}

TEST(Schedule, FrozenStageInTheMiddlePassesGradientsAndHasNoUpdate) {
  EXPECT_EQ(complete(plan_of("010001", 1, {three_stages(1)}), chain(6), 3),
            "d0: 0F0 0SEND_F0 0RECV_B0 0B0 0U\n"
            "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0\n"
            "d2: 2RECV_F0 2F0 2B0 2SEND_B0 2U\n");
}

TEST(Schedule, StagesThatAreNotNeighboursNameTheirPeer) {
  ModelProfile profile = chain(6);
  // Layer 5 (stage 2) also reads layers 0 and 1 (stage 0), which is still one message each way.
  profile.edges.insert(profile.edges.begin() + 1,
                       {LayerId{0}, LayerId{5}, EdgeKind::kGradient, {Bytes{1}, Bytes{2}}});
  profile.edges.insert(profile.edges.begin() + 3,
                       {LayerId{1}, LayerId{5}, EdgeKind::kGradient, {Bytes{1}}});
  EXPECT_EQ(complete(plan_of("111111", 1, {three_stages(1)}), profile, 3),
            "d0: 0F0 0SEND_F0 0SEND_F0>2 0RECV_B0 0RECV_B0>2 0B0 0U\n"
            "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1U\n"
            "d2: 2RECV_F0>0 2RECV_F0 2F0 2B0 2SEND_B0>0 2SEND_B0 2U\n");
}

TEST(Schedule, DetachedEdgesSendNothingBack) {
  // Teacher 0 -> 1 relays to the students 2 and 3; each student has a loss of its own.
  ModelProfile profile = chain(4);
  profile.layers[2].has_loss = true;
  profile.edges = {{LayerId{0}, LayerId{1}, EdgeKind::kGradient, {Bytes{1}}},
                   {LayerId{0}, LayerId{2}, EdgeKind::kDetached, {Bytes{1}}},
                   {LayerId{1}, LayerId{3}, EdgeKind::kDetached, {Bytes{1}}}};
  Plan plan = plan_of("0011", 1,
                      {make_pipeline(4, {LayerId{1}}, {DeviceId{0}, DeviceId{1}}, interval(0, 0))});
  plan.pipelines[0].stages[0].layers = {{LayerId{0}, LayerId{0}}, {LayerId{2}, LayerId{2}}};
  plan.pipelines[0].stages[1].layers = {{LayerId{1}, LayerId{1}}, {LayerId{3}, LayerId{3}}};
  EXPECT_EQ(complete(plan, profile, 2),
            "d0: 0F0 0SEND_F0 0B0 0U\n"
            "d1: 1RECV_F0 1F0 1B0 1U\n");
}

TEST(Schedule, SplitBackwardReceivesBeforeIAndSendsAfterIt) {
  Plan plan = plan_of("111111", 1, {three_stages(1)});
  plan.schedule = ExplicitSchedule{
      parse_schedule("d0: 0F0 0I0 0W0\nd1: 1F0 1I0 1W0\nd2: 2F0 2I0 2W0\n", "text").devices};
  EXPECT_EQ(complete(plan, chain(6), 3),
            "d0: 0F0 0SEND_F0 0RECV_B0 0I0 0W0 0U\n"
            "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1I0 1SEND_B0 1W0 1U\n"
            "d2: 2RECV_F0 2F0 2I0 2SEND_B0 2W0 2U\n");
}

TEST(Schedule, StageWithoutAnyIReceivesBeforeW) {
  Plan plan = plan_of("11", 1,
                      {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}}, interval(0, 0))});
  plan.schedule =
      ExplicitSchedule{parse_schedule("d0: 0F0 0I0 0W0\nd1: 1F0 1I0 1W0\n", "text").devices};
  EXPECT_EQ(complete(plan, chain(2), 2),
            "d0: 0F0 0SEND_F0 0RECV_B0 0W0 0U\n"
            "d1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0 1U\n");
  plan.mask = FreezeMask::parse("01", "test", 1);
  EXPECT_EQ(complete(plan, chain(2), 2),
            "d0: 0F0 0SEND_F0\n"
            "d1: 1RECV_F0 1F0 1W0 1U\n");
}

TEST(Schedule, PairsReceiveForBothHalvesFirstAndSendAfter) {
  Plan plan = plan_of("111111", 2, {three_stages(2)});
  plan.schedule = ExplicitSchedule{parse_schedule("d0: 0F0 0F1 0B0 0B1\n"
                                                  "d1: 1F0 (1F1;1B0)OVERLAP_F_B 1B1\n"
                                                  "d2: 2F0 2B0 2F1 2B1\n",
                                                  "text")
                                       .devices};
  const auto line_of_d1 = [&] {
    const std::string text = complete(plan, chain(6), 3);
    const std::size_t first = text.find("d1:");
    return text.substr(first, text.find('\n', first) - first);
  };
  EXPECT_EQ(line_of_d1(),
            "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_F1 1RECV_B0 (1F1;1B0)OVERLAP_F_B 1SEND_F1 1SEND_B0 "
            "1RECV_B1 1B1 1SEND_B1 1U");
  plan.mask = FreezeMask::parse("000011", "test", 1);
  EXPECT_EQ(line_of_d1(), "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1");
}

TEST(Schedule, ActionsOfSeveralMicroBatchesSendEachOne) {
  Plan plan = plan_of("11", 2,
                      {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}}, interval(0, 1))});
  plan.schedule =
      ExplicitSchedule{parse_schedule("d0: 0F0-1 0B0-1\nd1: 1F0 1F1 1B0 1B1\n", "text").devices};
  EXPECT_EQ(complete(plan, chain(2), 2),
            "d0: 0F0-1 0SEND_F0 0SEND_F1 0RECV_B0 0RECV_B1 0B0-1 0U\n"
            "d1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1 1U\n");
}

TEST(Schedule, StagesOnOneDeviceSendNothing) {
  Plan plan = plan_of("111111", 1, {three_stages(1)});
  plan.pipelines[0].stages[1].devices = {DeviceId{0}};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  EXPECT_EQ(complete(plan, chain(6), 3),
            "d0: 0F0 1F0 1SEND_F0 1RECV_B0 1B0 0B0 0U 1U\n"
            "d1:\n"
            "d2: 2RECV_F0 2F0 2B0 2SEND_B0 2U\n");
}

TEST(Schedule, ClippingPutsABarrierBetweenReductionsAndUpdates) {
  Plan plan = plan_of("0011", 2,
                      {make_pipeline(4, {LayerId{2}}, {DeviceId{0}, DeviceId{1}}, interval(0, 0)),
                       make_pipeline(4, {LayerId{3}}, {DeviceId{2}, DeviceId{3}}, interval(1, 1))});
  EXPECT_EQ(complete(plan, chain(4), 4, true),
            "d0: 0F0 0SEND_F0\n"
            "d1: 1RECV_F0 1F0 1B0 1REDUCE_GRAD BARRIER 1U\n"
            "d2: 1:0F1 1:0SEND_F1 1:0RECV_B1 1:0B1 1:0REDUCE_GRAD BARRIER 1:0U\n"
            "d3: 1:1RECV_F1 1:1F1 1:1B1 1:1SEND_B1 1:1REDUCE_GRAD BARRIER 1:1U\n");
}

TEST(Schedule, OwnerWithoutMicroBatchesStillReducesAndUpdates) {
  const Plan plan = plan_of("11", 1,
                            {make_pipeline(2, {}, {DeviceId{0}}, interval(0, 0)),
                             make_pipeline(2, {}, {DeviceId{1}}, interval(1, 0))});
  EXPECT_EQ(complete(plan, chain(2), 2),
            "d0: 0F0 0B0 0REDUCE_GRAD 0U\n"
            "d1: 1:0REDUCE_GRAD 1:0U\n");
}

TEST(Schedule, PipelinesInOppositeOrderReduceInTheSameOrderOfLayers) {
  const Plan plan =
      plan_of("1111", 2,
              {make_pipeline(4, {LayerId{2}}, {DeviceId{0}, DeviceId{1}}, interval(0, 0)),
               make_pipeline(4, {LayerId{2}}, {DeviceId{1}, DeviceId{0}}, interval(1, 1))});
  const std::string text = complete(plan, chain(4), 2);
  EXPECT_NE(text.find("0REDUCE_GRAD 0U 1:1REDUCE_GRAD 1:1U\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1:0REDUCE_GRAD 1:0U 1REDUCE_GRAD 1U\n"), std::string::npos) << text;
}

TEST(Schedule, StagesOfATiedParameterReduceAlsoWithASingleOwnerEach) {
  ModelProfile profile = chain(6);
  profile.tied = {{"embedding", Bytes{1000}, {LayerId{0}, LayerId{5}}}};
  Plan plan = plan_of("111111", 1, {three_stages(1)});
  EXPECT_EQ(complete(plan, profile, 3),
            "d0: 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0U\n"
            "d1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0 1U\n"
            "d2: 2RECV_F0 2F0 2B0 2SEND_B0 2REDUCE_GRAD 2U\n");
  plan.pipelines = {make_pipeline(6, {}, {DeviceId{0}}, interval(0, 0))};
  EXPECT_EQ(complete(plan, profile, 1), "d0: 0F0 0B0 0U\n");
}

TEST(Schedule, RefusesAnUpdateAmongBackwardsOfAParameterTiedAcrossDevices) {
  ModelProfile profile = chain(6);
  profile.tied = {{"embedding", Bytes{1000}, {LayerId{0}, LayerId{5}}}};
  Plan plan = plan_of("111111", 2, {three_stages(2)});
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream};
  plan.versions = WeightVersions::kStash;
  try {
    complete(plan, profile, 3);
    ADD_FAILURE() << "accepted";
  } catch (const InfeasibleError& error) {
    EXPECT_EQ(std::string(error.what()),
              "0U stands among the backwards, where gradients of several devices are not added "
              "yet");
  }
}

// True if a schedule has one chunk per device, needs no costs, does not recompute and keeps no
// weight versions.
bool stands_on_a_line(const ScheduleFacts& facts) {
  return facts.placement == Placement::kLinear && !facts.needs_costs &&
         facts.versions == WeightVersions::kSync && facts.kind != ScheduleKind::kVaruna;
}

// Walks all lists in order, where a RECV waits for its SEND and an F or B for nothing else. Returns
// true if every list comes to its end and every message was taken once.
bool runs_to_its_end(const Schedule& schedule) {
  using Message =
      std::tuple<int, int, int, bool, int>;  // pipeline, from, to, is backward, micro-batch
  std::multiset<Message> sent;
  std::vector<std::size_t> next(schedule.devices.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
      if (next[d] == schedule.devices[d].size()) continue;
      const Action& action = schedule.devices[d][next[d]];
      const bool sends =
          action.kind == ActionKind::kSendForward || action.kind == ActionKind::kSendBackward;
      const bool receives =
          action.kind == ActionKind::kReceiveForward || action.kind == ActionKind::kReceiveBackward;
      if (sends || receives) {
        const bool backward =
            action.kind == ActionKind::kSendBackward || action.kind == ActionKind::kReceiveBackward;
        const int step = sends == backward ? -1 : 1;
        const int peer = action.peer ? action.peer->value : action.stage.value + step;
        const int from = sends ? action.stage.value : peer;
        const int to = sends ? peer : action.stage.value;
        const Message message{action.pipeline.value, from, to, backward,
                              action.micro_batches->first.value};
        if (sends) {
          sent.insert(message);
        } else if (sent.count(message) == 0) {
          continue;
        } else {
          sent.erase(sent.find(message));
        }
      }
      ++next[d];
      moved = true;
    }
  }
  for (std::size_t d = 0; d < schedule.devices.size(); ++d) {
    if (next[d] != schedule.devices[d].size()) return false;
  }
  return sent.empty();
}

TEST(Schedule, EverySendOfRandomModelsMeetsItsReceive) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int layers = 8;
    ModelProfile profile = chain(layers);
    for (int from = 0; from < layers; ++from) {
      for (int to = from + 2; to < layers; ++to) {
        if (random() % 4 != 0) continue;
        profile.edges.push_back({LayerId{from},
                                 LayerId{to},
                                 random() % 3 == 0 ? EdgeKind::kDetached : EdgeKind::kGradient,
                                 {Bytes{1}}});
      }
    }
    std::sort(profile.edges.begin(), profile.edges.end(), [](const Edge& a, const Edge& b) {
      return std::tie(a.from, a.to) < std::tie(b.from, b.to);
    });
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices{DeviceId{0}};
    for (int layer = 1; layer < layers; ++layer) {
      if (random() % 2 == 0) continue;
      cuts.push_back(LayerId{layer});
      devices.push_back(DeviceId{devices.size()});
    }
    FreezeMask mask = FreezeMask::all_active(layers);
    for (int block = 0; block + 1 < layers; ++block) {
      if (random() % 2 == 0) mask.set_active(BlockId{block}, false);
    }
    const int micro_batches = 1 + static_cast<int>(random() % 8);
    Plan plan = plan_of(mask.text(), micro_batches,
                        {make_pipeline(layers, cuts, devices, interval(0, micro_batches - 1))});
    for (const ScheduleFacts& facts : all_schedules()) {
      if (!stands_on_a_line(facts)) continue;
      plan.schedule = NamedSchedule{.kind = facts.kind};
      const Schedule completed =
          complete_schedule(make_schedule(plan, static_cast<int>(devices.size())), plan, profile,
                            find_activity(profile, mask));
      EXPECT_TRUE(runs_to_its_end(completed)) << to_text(completed);
    }
  }
}

}  // namespace
}  // namespace frazil
