// Tests parameters tied across devices: each use is reduced like any other layer, then the sums are
// exchanged.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "planner/interop/chakra.h"
#include "planner/lowering/footprint.h"
#include "planner/plan/reduction_groups.h"
#include "planner/plan/tied_exchanges.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "sim/collective_cost.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

constexpr Bytes kTied{300};
constexpr BytesPerSecond kOneBytePerNs{1'000'000'000};

// Makes a model with an embedding in the first layer, which the last layer uses too.
ModelProfile make_model(int layers) {
  ModelProfile profile = make_chain(layers, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  for (Layer& layer : profile.layers) layer.update = nanoseconds(4);
  profile.tied = {{"embedding", kTied, {LayerId{0}, LayerId{layers - 1}}}};
  return profile;
}

Cluster make_cluster(int devices) {
  return make_uniform_cluster(devices, Bytes{1'000'000}, {nanoseconds(5), kOneBytePerNs});
}

std::vector<TiedExchange> exchanges_of(const Plan& plan, const ModelProfile& profile) {
  return find_tied_exchanges(plan, profile, find_activity(profile, plan.mask));
}

std::vector<std::string> list_collectives(const Timeline& timeline) {
  std::vector<std::string> texts;
  for (const Span& span : timeline.spans) {
    if (span.lane != Lane::kCollective) continue;
    texts.push_back("d" + std::to_string(span.device.value) + " " + to_text(span.action) + " " +
                    std::to_string(span.start.time_since_epoch().count()) + "-" +
                    std::to_string(span.end.time_since_epoch().count()));
  }
  return texts;
}

TEST(TiedExchanges, BetweenTwoStagesEachDeviceSendsItsSumToTheOther) {
  const ModelProfile profile = make_model(2);
  const Plan plan = make_shared_plan({1, 1}, 1, 2, {});
  const auto exchanges = exchanges_of(plan, profile);
  ASSERT_EQ(exchanges.size(), 1U);
  EXPECT_EQ(exchanges[0].uses,
            (std::vector<TiedUse>{{PipelineId{0}, LayerId{0}, StageId{0}, {DeviceId{0}}},
                                  {PipelineId{0}, LayerId{1}, StageId{1}, {DeviceId{1}}}}));
  EXPECT_EQ(exchanges[0].collective,
            (Collective{CollectiveKind::kAllGather, {DeviceId{0}, DeviceId{1}}, kTied * 2, {}}));
  const Cluster cluster = make_cluster(2);
  EXPECT_EQ(collective_cost(exchanges[0].collective, cluster).sent_by_busiest, kTied);
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  // The spans are 0F0 0-10, 10 bytes and 5 ns, 1F0 25-35, 1B0 35-55, 0B0 70-80; 1F1 55-65, 1B1
  // 65-85, 0B1 100-110; then come one step of 5 ns and 300 bytes.
  EXPECT_EQ(list_collectives(timeline),
            (std::vector<std::string>{"d0 0REDUCE_GRAD 110-415", "d1 1REDUCE_GRAD 110-415"}));
  for (const Span& span : timeline.spans) {
    if (span.action.kind != ActionKind::kUpdate) continue;
    EXPECT_EQ(span.start, TimePoint{nanoseconds(415)});
  }
}

TEST(TiedExchanges, StandAlsoWhereTheEmbeddingIsFrozenAndTheHeadIsNot) {
  const ModelProfile profile = make_model(3);
  Plan plan = make_shared_plan({1, 1, 1}, 1, 2, {});
  plan.mask = FreezeMask::frozen_prefix(3, BlockId{1});
  const auto exchanges = exchanges_of(plan, profile);
  ASSERT_EQ(exchanges.size(), 1U);
  EXPECT_EQ(exchanges[0].uses.front().layer, LayerId{0});
  // The frozen middle hands gradients on to the embedding; device 1 has no part in the exchange.
  EXPECT_EQ(exchanges[0].collective.devices, (std::vector<DeviceId>{DeviceId{0}, DeviceId{2}}));
  const Cluster cluster = make_cluster(3);
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  EXPECT_EQ(list_collectives(timeline).size(), 2U);
}

TEST(TiedExchanges, AreNoneWhereEveryDeviceHasEveryUseOrTheParameterIsFrozen) {
  ModelProfile profile = make_model(4);
  profile.tied[0].layers = {LayerId{0}, LayerId{1}};
  Plan plan = make_shared_plan({2, 1}, 2, 4, {});
  EXPECT_TRUE(exchanges_of(plan, profile).empty());  // both on stage 0, on two devices
  profile.tied[0].layers = {LayerId{0}, LayerId{2}};
  EXPECT_EQ(exchanges_of(plan, profile).size(), 1U);
  plan.mask = FreezeMask::frozen_prefix(4, BlockId{2});
  EXPECT_TRUE(exchanges_of(plan, profile).empty());
  plan.mask = FreezeMask::all_active(4);
  plan.pipelines[0].stages[1].devices = {DeviceId{1}, DeviceId{0}};
  EXPECT_TRUE(exchanges_of(plan, profile).empty());  // other stages, the same devices
}

// Two pipelines lie over the same devices in opposite order.
TEST(TiedExchanges, AreNoneWhereADeviceHasItsUsesInDifferentPipelines) {
  const ModelProfile profile = make_model(2);
  Plan plan = make_shared_plan({1, 1}, 1, 4, {});
  plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
  plan.pipelines.push_back(make_shared_pipeline({1, 1}, 1, {MicroBatchId{2}, MicroBatchId{3}}, 0));
  std::swap(plan.pipelines[1].stages[0].devices, plan.pipelines[1].stages[1].devices);
  EXPECT_TRUE(exchanges_of(plan, profile).empty());
  // If the second pipeline ends on a third device, device 1 still has both uses and serves devices
  // 0 and 2.
  plan.pipelines[1].stages[1].devices = {DeviceId{2}};
  const std::vector<LayerId> uses = {LayerId{0}, LayerId{1}};
  EXPECT_EQ(find_tied_messages(plan, uses),
            (std::vector<TiedMessage>{{PipelineId{1}, LayerId{0}, DeviceId{1}, DeviceId{2}},
                                      {PipelineId{0}, LayerId{1}, DeviceId{1}, DeviceId{0}}}));
}

// Messages stand by layer; the devices of a stage take turns in serving those of the other stage.
TEST(TiedExchanges, SendEachDeviceOnceWhatItLacksFromItsOwnPipeline) {
  Plan plan = make_shared_plan({2, 1, 3}, 1, 4, {});
  std::vector<TiedMessage> expected;
  const auto add = [&](int layer, int from, int to) {
    expected.push_back({PipelineId{0}, LayerId{layer}, DeviceId{from}, DeviceId{to}});
  };
  add(0, 0, 3), add(0, 1, 4), add(0, 0, 5);
  add(2, 3, 0), add(2, 4, 1);
  EXPECT_EQ(find_tied_messages(plan, {LayerId{0}, LayerId{2}}), expected);
}

// Makes two pipelines that meet in device 1, which has the head of the first and the embedding of
// the second.
Plan make_joined_plan() {
  Plan plan = make_shared_plan({1, 1}, 1, 4, {});
  plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
  plan.pipelines.push_back(make_shared_pipeline({1, 1}, 1, {MicroBatchId{2}, MicroBatchId{3}}, 1));
  return plan;
}

TEST(TiedExchanges, ChargeOnlyTheMessagesThatCrossWhereADeviceHasBothUses) {
  const ModelProfile profile = make_model(2);
  const Plan plan = make_joined_plan();
  const auto exchanges = exchanges_of(plan, profile);
  ASSERT_EQ(exchanges.size(), 2U);
  const Cluster cluster = make_cluster(3);
  const auto expect_one = [&](const TiedExchange& exchange, const TiedMessage& message,
                              const Collective& collective) {
    EXPECT_EQ(exchange.messages, std::vector<TiedMessage>{message});
    EXPECT_EQ(exchange.collective, collective);
    const CollectiveCost cost = collective_cost(exchange.collective, cluster);
    EXPECT_EQ(cost.steps, 1);
    EXPECT_EQ(cost.sent_by_busiest, kTied);
    EXPECT_EQ(cost.time, nanoseconds(5 + 300));
  };
  expect_one(exchanges[0], {PipelineId{0}, LayerId{1}, DeviceId{1}, DeviceId{0}},
             {CollectiveKind::kAllGather, {DeviceId{0}, DeviceId{1}}, kTied * 2, {0, 1, 1, 0}});
  expect_one(exchanges[1], {PipelineId{1}, LayerId{0}, DeviceId{1}, DeviceId{2}},
             {CollectiveKind::kAllGather, {DeviceId{1}, DeviceId{2}}, kTied * 2, {1, 0, 0, 1}});
  const SimulatedStep step = simulate_step(plan, {profile, cluster});
  // A use is not updated before all exchanges in which its device takes part.
  std::map<DeviceId, TimePoint> exchanged;
  const TaskGraph& graph = step.lowered.graph;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.lanes()[graph.lane_of()[task]].lane != Lane::kCollective) continue;
    TimePoint& last = exchanged[graph.lanes()[graph.lane_of()[task]].device];
    last = std::max(last, step.simulation.end[task]);
  }
  EXPECT_EQ(exchanged[DeviceId{2}] - exchanged[DeviceId{0}], nanoseconds(305));
  EXPECT_EQ(exchanged[DeviceId{1}], exchanged[DeviceId{2}]);
  int updates = 0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Action& action = step.lowered.actions[task];
    if (action.kind != ActionKind::kUpdate) continue;
    EXPECT_GE(step.simulation.start[task], exchanged[graph.lanes()[graph.lane_of()[task]].device]);
    ++updates;
  }
  EXPECT_EQ(updates, 4);
}

// Draws pipelines whose stages lie on any devices, also on several, and on the same.
Plan draw_plan(std::mt19937& random, int layers, int devices) {
  const int pipelines = std::uniform_int_distribution<int>(1, 3)(random);
  const std::vector<int> ones(static_cast<std::size_t>(layers), 1);
  Plan plan = make_shared_plan(ones, 1, pipelines, {});
  plan.pipelines.clear();
  for (int p = 0; p < pipelines; ++p) {
    Pipeline& pipeline = plan.pipelines.emplace_back(
        make_shared_pipeline(ones, 1, {MicroBatchId{p}, MicroBatchId{p}}));
    for (Stage& stage : pipeline.stages) {
      stage.devices.clear();
      for (int d = 0; d < devices; ++d) {
        if (random() % 3 == 0) stage.devices.emplace_back(d);
      }
      if (stage.devices.empty()) {
        stage.devices.emplace_back(static_cast<int>(random() % static_cast<unsigned>(devices)));
      }
      std::shuffle(stage.devices.begin(), stage.devices.end(), random);
    }
  }
  return plan;
}

struct Counts {
  int sent = 0;
  int received = 0;
};

// Counts what the collectives of the exchanges charge to each device.
std::map<DeviceId, Counts> count_charged(const std::vector<TiedExchange>& exchanges) {
  std::map<DeviceId, Counts> charged;
  for (const TiedExchange& exchange : exchanges) {
    const Collective& gather = exchange.collective;
    const std::size_t devices = gather.devices.size();
    EXPECT_EQ(share_among(gather.size, devices), kTied);
    for (std::size_t d = 0; d < devices; ++d) {
      const int others = static_cast<int>(devices) - 1;
      Counts& of = charged[gather.devices[d]];
      of.sent += gather.owned.empty() ? others : gather.owned.at(d);
      of.received += gather.owned.empty() ? others : gather.owned.at(devices + d);
    }
  }
  return charged;
}

TEST(TiedExchanges, ChargeEachDeviceTheUsesThatItHoldsNowhereAndNoMore) {
  const unsigned seed = 20261123;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int in_part = 0;
  int whole = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int layers = std::uniform_int_distribution<int>(2, 4)(random);
    const int devices = std::uniform_int_distribution<int>(2, 6)(random);
    ModelProfile profile = make_model(layers);
    if (layers > 2 && random() % 2 == 0) {
      profile.tied[0].layers = {LayerId{0}, LayerId{1}, LayerId{layers - 1}};
    }
    const Plan plan = draw_plan(random, layers, devices);
    std::map<DeviceId, std::set<LayerId>> held;
    for (const LayerId layer : profile.tied[0].layers) {
      for (const Pipeline& pipeline : plan.pipelines) {
        for (const DeviceId device : pipeline.stages[layer.index()].devices) {
          held[device].insert(layer);
        }
      }
    }
    const auto exchanges = exchanges_of(plan, profile);
    std::map<DeviceId, Counts> charged = count_charged(exchanges);
    int lacking = 0;
    for (const auto& [device, uses] : held) {
      const int lacks = static_cast<int>(profile.tied[0].layers.size() - uses.size());
      EXPECT_EQ(charged[device].received, lacks) << "trial " << trial;
      lacking += lacks;
    }
    int sent = 0;
    for (const auto& [device, counts] : charged) {
      EXPECT_TRUE(held.contains(device)) << "trial " << trial;
      sent += counts.sent;
    }
    EXPECT_EQ(sent, lacking) << "trial " << trial;
    for (const TiedExchange& exchange : exchanges) {
      for (const TiedMessage& message : exchange.messages) {
        EXPECT_TRUE(held[message.from].contains(message.layer));
        EXPECT_FALSE(held[message.to].contains(message.layer));
      }
      (exchange.collective.owned.empty() ? whole : in_part) += 1;
    }
  }
  EXPECT_GT(whole, 20);
  EXPECT_GT(in_part, 20);
}

TEST(TiedExchanges, AreJoinedByAllDevicesOfAStageAfterItsOwnReduction) {
  const ModelProfile profile = make_model(2);
  const Plan plan = make_shared_plan({2, 1}, 1, 4, {});
  const auto exchanges = exchanges_of(plan, profile);
  ASSERT_EQ(exchanges.size(), 1U);
  EXPECT_EQ(exchanges[0].collective.devices,
            (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}, DeviceId{2}}));
  // The head's sum goes to both devices of the first stage, and one of them sends its own.
  EXPECT_EQ(exchanges[0].collective.owned, (std::vector<int>{1, 0, 2, 1, 1, 1}));
  const Cluster cluster = make_cluster(3);
  EXPECT_EQ(collective_cost(exchanges[0].collective, cluster).sent_by_busiest, kTied * 2);
  for (const ReductionMode mode : {ReductionMode::kExact, ReductionMode::kFast}) {
    for (const bool overlaps : {false, true}) {
      Plan reduced = plan;
      reduced.reduction = mode;
      StepOptions options;
      if (overlaps) options.overlap.emplace();
      const SimulatedStep step = simulate_step(reduced, {profile, cluster}, options);
      TimePoint last_other;
      TimePoint first_update = TimePoint::max();
      std::vector<TimePoint> exchanged;
      for (TaskId task = 0; task < step.lowered.graph.size(); ++task) {
        const TaskGraph& graph = step.lowered.graph;
        const Lane lane = graph.lanes()[graph.lane_of()[task]].lane;
        const TimePoint start = step.simulation.start[task];
        if (step.lowered.actions[task].kind == ActionKind::kUpdate) {
          first_update = std::min(first_update, start);
        } else if (graph.works()[graph.work_of()[task]] == Work{exchanges[0].collective}) {
          exchanged.push_back(start);
          first_update = std::min(first_update, step.simulation.end[task]);
          EXPECT_EQ(lane, Lane::kCollective);
        } else {
          last_other = std::max(last_other, step.simulation.end[task]);
        }
      }
      ASSERT_EQ(exchanged.size(), 3U);
      for (const TimePoint start : exchanged) EXPECT_GE(start, last_other);
      // The exchange ends before any update, so `first_update` is its end.
      EXPECT_GT(first_update, last_other);
    }
  }
}

TEST(TiedExchanges, BelongToEachPipelineAndWaitForTheGroupsOfAll) {
  const ModelProfile profile = make_model(2);
  Plan plan = make_shared_plan({1, 1}, 1, 4, {});
  plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
  plan.pipelines.push_back(make_shared_pipeline({1, 1}, 1, {MicroBatchId{2}, MicroBatchId{3}}, 2));
  const auto exchanges = exchanges_of(plan, profile);
  ASSERT_EQ(exchanges.size(), 2U);
  EXPECT_EQ(exchanges[1].pipeline, PipelineId{1});
  EXPECT_EQ(exchanges[1].collective.devices, (std::vector<DeviceId>{DeviceId{2}, DeviceId{3}}));
  // Each device runs two collectives: its layer's, and the exchange.
  std::map<DeviceId, int> collectives;
  const Cluster cluster = make_cluster(4);
  for (const Span& span : simulate_plan(plan, {profile, cluster}).timeline.spans) {
    collectives[span.device] += span.lane == Lane::kCollective ? 1 : 0;
  }
  for (const auto& [device, times] : collectives) EXPECT_EQ(times, 2) << device.value;
}

TEST(TiedExchanges, StandBeforeTheBarrierOfAClippedStep) {
  const ModelProfile profile = make_model(2);
  const Plan plan = make_shared_plan({1, 1}, 1, 2, {});
  const Cluster cluster = make_cluster(2);
  const SimulatedStep step = simulate_step(plan, {profile, cluster}, {.clip = true});
  EXPECT_EQ(step.simulation.makespan, nanoseconds(415 + 4));
}

TEST(TiedExchanges, AreExportedAsCollectivesOfTheirDevices) {
  const ModelProfile profile = make_model(3);
  const Plan plan = make_shared_plan({1, 2, 1}, 1, 3, {});
  const Cluster cluster = make_cluster(4);
  const SimulatedStep step = simulate_step(plan, {profile, cluster});
  const ChakraTraces traces = to_chakra(step, plan, {profile, cluster});
  EXPECT_NE(traces.groups.find("[0, 3]"), std::string::npos) << traces.groups;
  EXPECT_NE(traces.groups.find("[1, 2]"), std::string::npos) << traces.groups;
}

TEST(TiedExchanges, LeaveEveryUseItsCopyInMemory) {
  const ModelProfile profile = make_model(2);
  Plan plan = make_shared_plan({1, 1}, 1, 2, {});
  plan.reduction = ReductionMode::kFast;
  const Activity activity = find_activity(profile, plan.mask);
  for (int s = 0; s < 2; ++s) {
    const auto held = find_footprint(plan, PipelineId{0}, StageId{s}, profile, activity);
    EXPECT_EQ(held.parameters, Bytes{1000});
    EXPECT_EQ(held.gradients, Bytes{1000});
    EXPECT_EQ(held.optimizer, Bytes{2000});
  }
}

}  // namespace
}  // namespace frazil
