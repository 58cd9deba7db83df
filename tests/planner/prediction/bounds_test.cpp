#include "planner/prediction/bounds.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "planner/plan/schedule_facts.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

WhatIf make_question(int stages, int micro_batches, Duration hop) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.forward = {nanoseconds(10)};
  what_if.backward_input = {nanoseconds(20)};
  what_if.backward_weight = {nanoseconds(30)};
  what_if.hop = hop;
  return what_if;
}

PlanBounds bounds_of(const WhatIfInputs& inputs) {
  return find_bounds(inputs.plan, {inputs.profile, inputs.cluster});
}

WhatIf with_schedule(WhatIf what_if, ScheduleKind kind) {
  what_if.schedule = kind;
  return what_if;
}

TEST(Bounds, AreReachedByEqualStagesWithoutAHop) {
  const PlanBounds bounds = bounds_of(make_what_if(make_question(4, 8, {})));
  EXPECT_EQ(bounds.makespan.time, nanoseconds((8 + 3) * 60));
  EXPECT_EQ(bounds.makespan.name, "busiest-device");
  // The first device waits for its first gradient.
  EXPECT_EQ(bounds.span.time, nanoseconds((8 + 3) * 60));
  EXPECT_EQ(bounds.span.name, "device-warm-up-cool-down");
}

TEST(Bounds, OfSplitBackwardsAreReachedByEqualStagesWithoutAHop) {
  const WhatIf question = with_schedule(make_question(4, 8, {}), ScheduleKind::kZbH1);
  const WhatIfAnswer answer = answer_what_if(make_what_if(question));
  EXPECT_EQ(answer.makespan, nanoseconds(8 * 60 + 3 * 20));
  EXPECT_EQ(answer.bounds.makespan.time, answer.makespan);
  EXPECT_EQ(answer.bounds.span.time, answer.span);
}

TEST(Bounds, OfOneMicroBatchAreItsWayDownAndBack) {
  const PlanBounds fused = bounds_of(make_what_if(make_question(4, 1, nanoseconds(7))));
  EXPECT_EQ(fused.makespan.time, nanoseconds(4 * 60 + 2 * 3 * 7));
  const WhatIf question = with_schedule(make_question(4, 1, nanoseconds(7)), ScheduleKind::kZbH1);
  const PlanBounds split = bounds_of(make_what_if(question));
  EXPECT_EQ(split.makespan.time, nanoseconds(4 * 30 + 30 + 2 * 3 * 7));
  EXPECT_EQ(split.makespan.name, "gradient-chain");
}

TEST(Bounds, OfFewMicroBatchesOnALongWayAreThatOfOne) {
  WhatIf question =
      with_schedule(make_question(2, 2, nanoseconds(100)), ScheduleKind::kInterleaved);
  question.chunks = 2;
  const PlanBounds bounds = bounds_of(make_what_if(question));
  EXPECT_EQ(bounds.makespan.time, nanoseconds(2 * 60 + 2 * 3 * 100));
  EXPECT_EQ(bounds.makespan.name, "one-micro-batch");
  EXPECT_EQ(bounds.span.time, nanoseconds(2 * 60));
}

// Makes three stages: F is 100 on the second and 10 elsewhere; I is 20 and W 30 everywhere, so B is
// 50.
WhatIf slow_middle(ScheduleKind kind) {
  WhatIf what_if = with_schedule(make_question(3, 5, nanoseconds(2)), kind);
  what_if.forward = {nanoseconds(10), nanoseconds(100), nanoseconds(10)};
  what_if.chunks = 1;
  return what_if;
}

TEST(Bounds, FollowTheSlowestDeviceWithItsHeadAndTail) {
  const PlanBounds bounds = bounds_of(make_what_if(slow_middle(ScheduleKind::kInterleaved)));
  // Before the second stage come one F and one hop, after it one hop and one B.
  EXPECT_EQ(bounds.makespan.time, nanoseconds(10 + 2 + 5 * 150 + 2 + 50));
  EXPECT_EQ(bounds.makespan.name, "busiest-device");
  EXPECT_EQ(bounds.span.time, nanoseconds(5 * 150));
  EXPECT_EQ(bounds.span.name, "busiest-device");
}

TEST(Bounds, CountWhatTheSlowestDeviceWaitsForWithItsMicroBatchesInFlight) {
  const PlanBounds bounds =
      bounds_of(make_what_if(slow_middle(ScheduleKind::kOneForwardOneBackward)));
  // The second stage holds two: after its last F it waits 2 + 10 + 50 + 2 for the gradient, less a
  // B of 50. The first device waits for all of that.
  EXPECT_EQ(bounds.makespan.time, nanoseconds(10 + 2 + 5 * 150 + 14 + 2 + 50));
  EXPECT_EQ(bounds.makespan.name, "gradient-chain");
  EXPECT_EQ(bounds.span.time, bounds.makespan.time);
}

TEST(Bounds, HaveNoTailWhereWeightGradientsMayComeLast) {
  WhatIf what_if = slow_middle(ScheduleKind::kInterleavedZb);
  PlanBounds bounds = bounds_of(make_what_if(what_if));
  EXPECT_EQ(bounds.makespan.time, nanoseconds(10 + 2 + 5 * 150));
  EXPECT_EQ(bounds.makespan.name, "general-floor");
  EXPECT_EQ(bounds.span.time, nanoseconds(5 * 150));
  EXPECT_EQ(bounds.span.name, "general-floor");
  what_if.backward_weight = {nanoseconds(1)};
  bounds = bounds_of(make_what_if(what_if));
  // The second stage runs all F and I; then come a hop, and I and W of the first device.
  EXPECT_EQ(bounds.makespan.time, nanoseconds(10 + 2 + 5 * 120 + 2 + 20 + 1));
  EXPECT_EQ(bounds.makespan.name, "gradient-chain");
}

TEST(Bounds, CountTheForwardThatIsRunAgain) {
  const WhatIf question = with_schedule(make_question(2, 6, {}), ScheduleKind::kVaruna);
  const PlanBounds bounds = bounds_of(make_what_if(question));
  EXPECT_EQ(bounds.makespan.time, nanoseconds(6 * (10 + 10 + 50)));
  EXPECT_EQ(bounds.makespan.name, "busiest-device");
}

// F, I and W take 1 each over four devices with hops of 0.313: the simulator says 33 + 16 x 0.313 =
// 38.008.
TEST(Bounds, AreCloseToOneForwardOneBackwardWithHops) {
  constexpr std::chrono::microseconds kUnit{1000};
  WhatIf question = make_question(4, 8, std::chrono::microseconds(313));
  question.forward = question.backward_input = question.backward_weight = {kUnit};
  const WhatIfAnswer answer = answer_what_if(make_what_if(question));
  EXPECT_EQ(answer.makespan, 33 * kUnit + 16 * question.hop);
  EXPECT_EQ(answer.bounds.makespan.time, 33 * kUnit + 14 * question.hop);
  EXPECT_EQ(answer.bounds.span.time, answer.bounds.makespan.time);
  EXPECT_EQ(answer.bounds.span.name, "gradient-chain");
}

TEST(Bounds, CountUpdatesAndStepOverhead) {
  ModelProfile profile = make_chain(1, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  profile.layers[0].update = nanoseconds(7);
  Cluster cluster = make_uniform_cluster(1, Bytes{1'000'000}, {});
  cluster.devices[0].step_overhead = nanoseconds(1000);
  Plan plan;
  plan.batch_size = 2;
  plan.mask = FreezeMask::all_active(1);
  plan.pipelines = {make_pipeline(1, {}, {DeviceId{0}}, {MicroBatchId{0}, MicroBatchId{1}})};
  const PlanBounds bounds = find_bounds(plan, {profile, cluster});
  EXPECT_EQ(bounds.makespan.time, nanoseconds(1000 + 2 * 20 + 7));
  EXPECT_EQ(bounds.span.time, nanoseconds(1000 + 2 * 20 + 7));
  EXPECT_EQ(simulate_plan(plan, {profile, cluster}).makespan, bounds.makespan.time);
}

struct RandomPlan {
  ModelProfile profile;
  Cluster cluster;
  Plan plan;
};

RandomPlan make_random_plan(std::mt19937_64& random) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  RandomPlan made;
  const int layers = draw(2, 8);
  made.profile = make_chain(layers, nanoseconds(1), nanoseconds(1), nanoseconds(1));
  for (Layer& layer : made.profile.layers) {
    layer.update = nanoseconds(draw(0, 50));
    for (CostSample& cost : layer.costs) {
      cost.forward = nanoseconds(draw(1, 100)) * cost.micro_batch_size;
      cost.backward_input = nanoseconds(draw(0, 100)) * cost.micro_batch_size;
      cost.backward_weight = nanoseconds(draw(0, 100)) * cost.micro_batch_size;
      cost.backward_weight_alone = nanoseconds(draw(0, 100)) * cost.micro_batch_size;
    }
  }
  if (draw(0, 3) == 0) {  // a boundary or an inner edge without gradients
    Edge& edge = made.profile.edges[random() % made.profile.edges.size()];
    edge.kind = EdgeKind::kDetached;
    made.profile.layers[edge.from.index()].has_loss = true;
  }
  if (draw(0, 1) == 1) {  // a layer read twice: boundaries that skip stages
    made.profile.edges.insert(made.profile.edges.begin() + 1,
                              {LayerId{0}, LayerId{layers - 1}, EdgeKind::kGradient, {Bytes{5}}});
    if (layers == 2) made.profile.edges.pop_back();
  }
  const int stages = draw(1, std::min(layers, 4));
  const int replicas = draw(1, 3);
  made.cluster =
      make_uniform_cluster(stages * replicas, Bytes{1'000'000'000},
                           {nanoseconds(draw(0, 60)), BytesPerSecond{draw(0, 1) * 1'000'000'000}});
  for (Device& device : made.cluster.devices) {
    device.time_ppm = draw(500'000, 2'000'000);
    device.action_overhead = nanoseconds(draw(0, 5));
    device.step_overhead = nanoseconds(draw(0, 1) * draw(0, 300));
  }
  Plan& plan = made.plan;
  plan.micro_batch_size = draw(1, 3);
  plan.batch_size = draw(replicas * plan.micro_batch_size, 20);
  plan.mask = draw(0, 1) == 1 ? FreezeMask::all_active(layers)
                              : FreezeMask::frozen_prefix(layers, BlockId{draw(0, layers - 1)});
  const std::array kinds{ScheduleKind::kGpipe,
                         ScheduleKind::kOneForwardOneBackward,
                         ScheduleKind::kEagerOneForwardOneBackward,
                         ScheduleKind::kZbH1,
                         ScheduleKind::kZbH2,
                         ScheduleKind::kZb1p,
                         ScheduleKind::kZb2p,
                         ScheduleKind::kTwoBp,
                         ScheduleKind::kInterleaved,
                         ScheduleKind::kInterleavedZb};
  NamedSchedule schedule{.kind = kinds[random() % kinds.size()]};
  if (facts_of(schedule.kind).takes_in_flight && draw(0, 1) == 1) schedule.in_flight = draw(1, 9);
  plan.schedule = schedule;
  // The schedule gpipe may stand on any placement.
  const int places = schedule.kind == ScheduleKind::kGpipe ? draw(1, stages) : stages;
  std::vector<LayerId> cuts;
  for (int s = 1; s < stages; ++s) cuts.emplace_back(s * layers / stages);
  int first = 0;
  for (int r = 0; r < replicas; ++r) {
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) devices.emplace_back(r * stages + s % places);
    const int end = plan.micro_batches() * (r + 1) / replicas;
    plan.pipelines.push_back(
        make_pipeline(layers, cuts, devices, {MicroBatchId{first}, MicroBatchId{end - 1}}));
    first = end;
  }
  return made;
}

void recompute_some(Plan& plan, std::mt19937_64& random) {
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) {
      if (random() % 2 == 0) stage.memory = MemoryPolicy::kRecompute;
    }
  }
}

// Splits some backwards into I and W, each W right after its I or at the end.
std::vector<std::vector<Action>> split_some(const Schedule& schedule, std::mt19937_64& random) {
  std::vector<std::vector<Action>> lists;
  for (const std::vector<Action>& list : schedule.devices) {
    std::vector<Action>& split = lists.emplace_back();
    std::vector<Action> late;
    for (Action action : list) {
      const bool whole = action.kind != ActionKind::kBackward || random() % 2 == 0;
      if (!whole) action.kind = ActionKind::kBackwardInput;
      split.push_back(action);
      if (whole) continue;
      action.kind = ActionKind::kBackwardWeight;
      (random() % 2 == 0 ? split : late).push_back(action);
    }
    split.insert(split.end(), late.begin(), late.end());
  }
  return lists;
}

struct Seen {
  std::map<std::string, int> makespan, span;  // plans by the name of the bound
};

void expect_below_the_simulated(const RandomPlan& made, const Plan& plan, Seen& seen) {
  const PlanBounds bounds = find_bounds(plan, {made.profile, made.cluster});
  for (const bool clip : {false, true}) {
    const PlanSimulation simulation =
        simulate_plan(plan, {made.profile, made.cluster}, {.clip = clip});
    EXPECT_LE(bounds.makespan.time, simulation.makespan) << bounds.makespan.name;
    EXPECT_LE(bounds.span.time, max_span(simulation.timeline)) << bounds.span.name;
    EXPECT_GT(bounds.makespan.time, Duration{0});
  }
  ++seen.makespan[bounds.makespan.name];
  ++seen.span[bounds.span.name];
}

// Plans have frozen prefixes, DAGs, detached edges, replicas, speeds, overheads, short last
// micro-batches, stages that recompute and several stages on a device. Each schedule is tried by
// name and as the lists it makes, with some backwards split.
TEST(Bounds, AreNeverAboveTheSimulatedTimes) {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    RandomPlan made = make_random_plan(random);
    if (random() % 4 == 0) recompute_some(made.plan, random);
    expect_below_the_simulated(made, made.plan, seen);
    Plan given = made.plan;
    const Setting setting{made.profile, made.cluster};
    const auto devices = static_cast<int>(made.cluster.devices.size());
    const Schedule schedule = make_schedule(made.plan, devices, setting);
    given.schedule =
        ExplicitSchedule{random() % 2 == 0 ? schedule.devices : split_some(schedule, random)};
    expect_below_the_simulated(made, given, seen);
  }
  for (const char* name : {"busiest-device", "general-floor", "gradient-chain",
                           "device-warm-up-cool-down", "one-micro-batch"}) {
    EXPECT_GT(seen.makespan[name], 0) << name;
    EXPECT_EQ(seen.span[name] > 0, name != std::string("one-micro-batch")) << name;
  }
}

WhatIf make_random_question(ScheduleKind kind, std::mt19937_64& random) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const ScheduleFacts& facts = facts_of(kind);
  WhatIf what_if;
  what_if.schedule = kind;
  what_if.stages = 2 * draw(1, 3);
  what_if.micro_batches = what_if.stages * draw(1, 4);
  if (facts.legal != ScheduleFacts::Chunks::kFixed) what_if.chunks = 2 * draw(1, 2);
  if (facts.takes_in_flight && draw(0, 1) == 1) what_if.in_flight = draw(1, 12);
  const int values = directions(facts.placement) == 1 && draw(0, 1) == 1 ? what_if.stages : 1;
  for (int i = 0; i < values; ++i) {
    what_if.forward.emplace_back(draw(1, 1000));
    what_if.backward_input.emplace_back(draw(1, 1000));
    what_if.backward_weight.emplace_back(draw(1, 1000));
  }
  what_if.hop = nanoseconds(draw(0, 2) * draw(0, 300));
  return what_if;
}

TEST(Bounds, AreNeverAboveTheTimesOfAnyScheduleOfTheMenu) {
  for (const ScheduleFacts& facts : all_schedules()) {
    int answers = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(std::string(schedule_name(facts.kind)) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const WhatIfInputs inputs = make_what_if(make_random_question(facts.kind, random));
      try {
        const WhatIfAnswer answer = answer_what_if(inputs);
        EXPECT_LE(answer.bounds.makespan.time, answer.makespan) << answer.bounds.makespan.name;
        EXPECT_LE(answer.bounds.span.time, answer.span) << answer.bounds.span.name;
        ++answers;
      } catch (const InfeasibleError&) {  // not every schedule takes any number of micro-batches
      }
    }
    EXPECT_GT(answers, 50) << schedule_name(facts.kind);
  }
}

}  // namespace
}  // namespace frazil
