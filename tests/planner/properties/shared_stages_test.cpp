// Tests stages on several devices from the plan to the answer.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "planner/interop/chakra.h"
#include "planner/lowering/footprint.h"
#include "planner/plan/reduction_groups.h"
#include "planner/prediction/idle_time.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/prediction/step_messages.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "sim/collective_cost.h"
#include "sim/cost_model.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

TEST(SharedStages, FollowATimeLineByHand) {
  const ModelProfile profile = make_shared_model(2);
  const Cluster cluster = make_shared_cluster(3);
  const Plan plan = make_shared_plan({2, 1}, 1, 3, {});
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  // F takes 10, B 10 on stage 0 (which has no I) and 20 on stage 1, a hop 1. Two devices reduce in
  // two steps of latency, because a message over a link without bandwidth takes no further time.
  EXPECT_EQ(list_spans(timeline, 0),
            "0F0 0-10 0F2 10-20 0B0 42-52 0B2 102-112 0REDUCE_GRAD 112-114 0U 114-118");
  EXPECT_EQ(list_spans(timeline, 1), "0F1 0-10 0B1 72-82 0REDUCE_GRAD 112-114 0U 114-118");
  EXPECT_EQ(list_spans(timeline, 2),
            "1F0 11-21 1B0 21-41 1F1 41-51 1B1 51-71 1F2 71-81 1B2 81-101 1U 101-105");
}

TEST(SharedStages, ListsReduceAndUpdateOnEveryDeviceAlsoWithoutAMicroBatch) {
  const ModelProfile profile = make_shared_model(2);
  const Plan plan = make_shared_plan({3, 1}, 1, 2, {});
  const Activity activity = find_activity(profile, plan.mask);
  const auto completed = [&](bool clip) {
    return to_text(complete_schedule(make_schedule(plan, 4), plan, profile, activity, clip));
  };
  EXPECT_EQ(completed(false),
            "d0: 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0U\n"
            "d1: 0F1 0SEND_F1 0RECV_B1 0B1 0REDUCE_GRAD 0U\n"
            "d2: 0REDUCE_GRAD 0U\n"
            "d3: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1U\n");
  EXPECT_NE(completed(true).find("d2: 0REDUCE_GRAD BARRIER 0U\n"), std::string::npos);
  const Cluster cluster = make_shared_cluster(4);
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  const std::string idle = list_spans(timeline, 2);
  const std::string busy = list_spans(timeline, 1);
  EXPECT_EQ(idle, busy.substr(busy.find("0REDUCE_GRAD")));
}

// A message is sent only if the two devices of a micro-batch differ.
TEST(SharedStages, SendOneMessagePerMicroBatchThatChangesItsDevice) {
  const ModelProfile profile = make_shared_model(2);
  const auto count_messages = [&](const Plan& plan, int devices) {
    const Activity activity = find_activity(profile, plan.mask);
    const Schedule completed =
        complete_schedule(make_schedule(plan, devices), plan, profile, activity);
    const std::string text = to_text(completed);
    std::map<std::string, int> found;
    for (const std::string kind : {"SEND_F", "RECV_F", "SEND_B", "RECV_B"}) {
      for (auto at = text.find(kind); at != std::string::npos; at = text.find(kind, at + 1)) {
        ++found[kind];
      }
    }
    const Cluster cluster = make_shared_cluster(devices);
    const LoweredStep step = lower(plan, completed, {profile, cluster}, activity);
    const auto messages = find_step_messages(step, plan, profile, activity);
    EXPECT_EQ(static_cast<int>(messages.size()), found["SEND_F"] + found["SEND_B"]);
    EXPECT_EQ(found["RECV_F"], found["SEND_F"]);
    EXPECT_EQ(found["RECV_B"], found["SEND_B"]);
    EXPECT_EQ(found["SEND_B"], found["SEND_F"]);
    return found["SEND_F"];
  };
  Plan plan = make_shared_plan({2, 1}, 1, 6, {.kind = ScheduleKind::kGpipe});
  EXPECT_EQ(count_messages(plan, 3), 6);
  // Stage 0 lies on 0 1 0 1 0 1, stage 1 on 0 1 2 0 1 2: micro-batches 0 and 1 stay where they are.
  plan.pipelines[0].stages[1].devices = {DeviceId{0}, DeviceId{1}, DeviceId{2}};
  EXPECT_EQ(count_messages(plan, 3), 4);
  plan.pipelines[0].stages[1].devices = {DeviceId{0}, DeviceId{1}};
  EXPECT_EQ(count_messages(plan, 2), 0);
}

TEST(SharedStages, MemoryIsStateGradientsOfTheOwnMicroBatchesAndWhatIsInFlight) {
  const ModelProfile profile = make_shared_model(2);
  Plan plan = make_shared_plan({2, 1}, 1, 3, {});
  const Cluster cluster = make_shared_cluster(3);
  std::vector<MemoryPeak> memory = simulate_plan(plan, {profile, cluster}).memory;
  // A device holds 1000 of parameters and 2000 of optimizer state. The tree is ((0+1)+2): device 0
  // has 0 and 2, which do not add up, device 1 has 1 and device 2 all, two sets at most; in flight
  // are 2, 1 and 1. Devices 0 and 1 hold most when half a node comes to two of their own, or two
  // halves to one.
  EXPECT_EQ(memory[0].total, Bytes{3000 + 2 * 1000 + 500});
  EXPECT_EQ(memory[1].total, Bytes{3000 + 1000 + 2 * 500});
  EXPECT_EQ(memory[2].total, Bytes{3000 + 2 * 1000 + 100});
  plan.reduction = ReductionMode::kFast;
  memory = simulate_plan(plan, {profile, cluster}).memory;
  EXPECT_EQ(memory[0].total, Bytes{3000 + 2 * 1000}) << "the sum and what goes round the ring";
  EXPECT_EQ(memory[2].total, Bytes{3000 + 1000 + 100});
}

TEST(SharedStages, AFrozenStageHasAReceiveBufferForWhatComesFromAnotherDevice) {
  const ModelProfile profile = make_shared_model(2);
  Plan plan = make_shared_plan({2, 3}, 1, 6, {.kind = ScheduleKind::kGpipe});
  plan.pipelines[0].stages[1].devices = {DeviceId{0}, DeviceId{1}, DeviceId{2}};
  const Activity frozen{.layers = std::vector<LayerActivity>(2), .edge_carries = {false}};
  const auto received = [&](int device) {
    return find_footprint(plan, PipelineId{0}, StageId{1}, DeviceId{device}, profile, frozen)
        .receive_per_micro_batch;
  };
  // Device 2 works on 2 and 5, device 0 on 0 and 3, device 1 on 1 and 4: all but 0 and 1 travel.
  EXPECT_EQ(received(0), Bytes{10});
  EXPECT_EQ(received(2), Bytes{10});
  plan.batch_size = 2;
  plan.pipelines[0].micro_batches = {interval(0, 1)};
  EXPECT_EQ(received(0), Bytes{0});
  EXPECT_EQ(received(2), Bytes{0});
}

TEST(SharedStages, ReduceAmongAllDevicesOfAllPipelinesThatHoldALayer) {
  const ModelProfile profile = make_shared_model(2);
  Plan plan = make_shared_plan({2, 1}, 1, 6, {});
  plan.pipelines[0].micro_batches = {interval(0, 3)};
  plan.pipelines.push_back(make_shared_pipeline({1}, 2, interval(4, 5), 3));
  const auto groups = find_reduction_groups(plan, profile, find_activity(profile, plan.mask));
  ASSERT_EQ(groups.size(), 2U);
  // The tree is ((01)(23))+(45), and devices 0 and 1 have every other of 0 to 3.
  EXPECT_EQ(groups[0].collective.devices,
            (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}, DeviceId{3}}));
  EXPECT_EQ(groups[0].collective.owned, (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(groups[0].owners[1].micro_batches,
            (std::vector<MicroBatches>{interval(1, 1), interval(3, 3)}));
  EXPECT_EQ(groups[1].collective.devices, (std::vector<DeviceId>{DeviceId{2}, DeviceId{3}}));
  EXPECT_EQ(groups[1].collective.owned, (std::vector<int>{1, 1}));
}

struct Drawn {
  std::vector<int> devices;
  ModelProfile profile;
  Cluster cluster;
  Plan plan;
};

// Draws stages and devices of any speed; only hops take time between the devices.
Drawn draw_step(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t most) { return static_cast<int>(random() % most) + 1; };
  Drawn drawn;
  for (int s = up_to(4); s > 0; --s) drawn.devices.push_back(up_to(3));
  const auto stages = static_cast<int>(drawn.devices.size());
  drawn.profile = make_shared_model(stages);
  for (Layer& layer : drawn.profile.layers) {
    CostSample& cost = layer.costs.front();
    cost.forward = cost.forward_frozen = nanoseconds(up_to(50));
    cost.backward_input = nanoseconds(up_to(50));
    cost.backward_weight = cost.backward_weight_alone = nanoseconds(up_to(50));
  }
  drawn.cluster = make_shared_cluster(count(drawn.devices), nanoseconds(up_to(30) - 1));
  const auto kind = random() % 3 == 0   ? ScheduleKind::kGpipe
                    : random() % 2 == 0 ? ScheduleKind::kOneForwardOneBackward
                                        : ScheduleKind::kEagerOneForwardOneBackward;
  drawn.plan = make_shared_plan(drawn.devices, 1, up_to(12), {.kind = kind});
  return drawn;
}

using Ends = std::map<std::tuple<bool, int, int>, Duration>;  // (is forward, stage, micro-batch)

// An oracle without a graph raises the end of each action until neither its list nor its message
// contradicts it. Micro-batch m of stage s lies on device m mod d of the stage, counted after the
// devices of the stages before.
Ends relax_lists(const Drawn& drawn) {
  const auto& layers = drawn.profile.layers;
  const auto stages = static_cast<int>(layers.size());
  const Duration hop = drawn.cluster.default_link.latency;
  const Schedule made = make_schedule(drawn.plan, count(drawn.devices));
  Ends ends;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<Action>& list : made.devices) {
      Duration now{0};
      for (const Action& action : list) {
        const bool forward = action.kind == ActionKind::kForward;
        const int s = action.stage.value;
        const int m = action.micro_batches->first.value;
        const CostSample& cost = layers[action.stage.index()].costs.front();
        if (forward && s > 0) now = std::max(now, ends[{true, s - 1, m}] + hop);
        if (!forward && s + 1 < stages) now = std::max(now, ends[{false, s + 1, m}] + hop);
        now += forward ? cost.forward
                       : cost.backward_weight + (s > 0 ? cost.backward_input : Duration{0});
        Duration& end = ends[{forward, s, m}];
        changed = changed || end != now;
        end = now;
      }
    }
  }
  return ends;
}

TEST(SharedStages, DoEveryMicroBatchOnceOnItsDeviceAtTheTimesOfAnIndependentRelaxation) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Drawn drawn = draw_step(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(drawn.plan));
    const Ends ends = relax_lists(drawn);
    Ends found;
    for (const Span& span :
         simulate_plan(drawn.plan, {drawn.profile, drawn.cluster}).timeline.spans) {
      const bool forward = span.action.kind == ActionKind::kForward;
      if (!forward && span.action.kind != ActionKind::kBackward) continue;
      const int stage = span.action.stage.value;
      const int m = span.action.micro_batches->first.value;
      const auto first = std::accumulate(drawn.devices.begin(), drawn.devices.begin() + stage, 0);
      EXPECT_EQ(span.device.value, first + m % drawn.devices[span.action.stage.index()]);
      EXPECT_TRUE(found.emplace(std::tuple(forward, stage, m), span.end.time_since_epoch()).second);
    }
    EXPECT_EQ(found.size(), 2 * drawn.devices.size() * std::size_t(drawn.plan.batch_size));
    EXPECT_EQ(found, ends);
  }
}

// The account of idle times has a cause for every wait, and Chakra's export a file for each device.
TEST(SharedStages, AreExplainedAndExportedLikeAnyOther) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Drawn drawn = draw_step(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(drawn.plan));
    if (seed % 2 == 0) drawn.cluster.default_link.bandwidth = BytesPerSecond{500'000'000};
    const SimulatedStep step = simulate_step(drawn.plan, {drawn.profile, drawn.cluster});
    const Prices prices = price_all(step.lowered.graph, {drawn.profile, drawn.cluster});
    for (const DeviceTime& time :
         split_makespan(step.lowered, step.simulation, prices.of_work, count(drawn.devices))) {
      EXPECT_EQ(total(time), step.simulation.makespan);
    }
    EXPECT_EQ(to_chakra(step, drawn.plan, {drawn.profile, drawn.cluster}).files.size(),
              static_cast<std::size_t>(count(drawn.devices)));
  }
}

// Updates come after all reductions of their stage, with overlap too, and everything that waits
// goes on.
TEST(SharedStages, UpdateAfterTheirReductionsInBothModesWithAndWithoutOverlap) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Drawn drawn = draw_step(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(drawn.plan));
    drawn.cluster.default_link.bandwidth = BytesPerSecond{100'000'000'000};
    for (const ReductionMode mode : {ReductionMode::kExact, ReductionMode::kFast}) {
      for (const bool overlaps : {false, true}) {
        drawn.plan.reduction = mode;
        StepOptions options;
        if (overlaps) options.overlap.emplace();
        std::map<DeviceId, TimePoint> reduced;
        std::map<DeviceId, TimePoint> updated;
        for (const Span& span :
             simulate_plan(drawn.plan, {drawn.profile, drawn.cluster}, options).timeline.spans) {
          if (span.action.kind == ActionKind::kReduceGradients) {
            TimePoint& last = reduced[span.device];
            last = std::max(last, span.end);
          }
          if (span.action.kind == ActionKind::kUpdate) updated[span.device] = span.start;
        }
        EXPECT_EQ(updated.size(), drawn.cluster.devices.size());
        for (const auto& [device, end] : reduced) EXPECT_LE(end, updated.at(device));
        int shared = 0;
        for (const int devices : drawn.devices) shared += devices > 1 ? devices : 0;
        EXPECT_EQ(static_cast<int>(reduced.size()), shared);
      }
    }
  }
}

TEST(SharedStages, AreDispatchedByEveryPolicyThatIsInterpreted) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Drawn drawn = draw_step(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(drawn.plan));
    for (const auto policy :
         {DispatchPolicy::kFifo, DispatchPolicy::kPriority, DispatchPolicy::kLrtf}) {
      drawn.plan.schedule = policy;
      const Setting setting{drawn.profile, drawn.cluster};
      drawn.plan.schedule =
          ExplicitSchedule{make_schedule(drawn.plan, count(drawn.devices), setting).devices};
      EXPECT_GT(simulate_plan(drawn.plan, setting).makespan, Duration{0});
    }
  }
}

}  // namespace
}  // namespace frazil
