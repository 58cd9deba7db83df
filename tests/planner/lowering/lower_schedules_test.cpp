// Compares every schedule of the menu on the whole path (generate, lower, sweep) with the reference
// that knows no task graph, and tests what pairs, recomputing and weight versions do to time and
// memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/actions/schedule_check.h"
#include "planner/actions/validate_plan.h"
#include "planner/orders/make_orders.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

int below(std::mt19937_64& random, int limit) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(limit));
}

// Draws a question that the schedule's conditions allow.
WhatIf random_question(std::mt19937_64& random, const ScheduleFacts& facts) {
  WhatIf what_if;
  what_if.schedule = facts.kind;
  const bool both_ways = directions(facts.placement) == 2;
  what_if.stages = both_ways ? 2 * (1 + below(random, 3)) : 1 + below(random, 6);
  const int p = what_if.stages;
  what_if.micro_batches = both_ways || facts.kind == ScheduleKind::kDualPipeV
                              ? p * (2 + below(random, 2))
                              : 1 + below(random, 3 * p + 2);
  if (facts.legal == ScheduleFacts::Chunks::kAny) what_if.chunks = 1 + below(random, 4);
  if (facts.legal == ScheduleFacts::Chunks::kEven) what_if.chunks = 2 + 2 * below(random, 2);
  if (facts.takes_in_flight && below(random, 2) == 0) {
    what_if.in_flight = 1 + below(random, 2 * p + 1);
  }
  const int times = both_ways ? 1 : p;
  for (int d = 0; d < times; ++d) {
    what_if.forward.emplace_back(1 + below(random, 1000));
    what_if.backward_input.emplace_back(below(random, 1000));
    what_if.backward_weight.emplace_back(below(random, 1000));
  }
  what_if.hop = Duration{below(random, 2) * below(random, 400)};
  return what_if;
}

// Makes the generators' problem from the question's own times, without a plan.
OrderProblem to_problem(const WhatIf& what_if, const ScheduleFacts& facts) {
  const auto of_device = [](const std::vector<Duration>& times, int device) {
    return times.size() == 1 ? times[0] : times.at(static_cast<std::size_t>(device));
  };
  OrderProblem problem;
  problem.devices = what_if.stages;
  problem.chunks = what_if.chunks.value_or(facts.chunks);
  problem.micro_batches = what_if.micro_batches;
  problem.in_flight = what_if.in_flight;
  problem.hop = what_if.hop;
  for (int s = 0; s < problem.stages(); ++s) {
    const int device = device_of_stage(facts.placement, problem.devices, 0, s);
    const OrderProblem shares = make_order_problem(
        problem.devices, problem.chunks, problem.micro_batches,
        {of_device(what_if.forward, device), of_device(what_if.backward_input, device),
         of_device(what_if.backward_weight, device)});
    problem.times.push_back(shares.times[static_cast<std::size_t>(s)]);
  }
  return problem;
}

TEST(LowerSchedules, EveryScheduleTakesTheTimeOfTheReference) {
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(schedule_name(facts.kind));
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const WhatIf what_if = random_question(random, facts);
      const OrderProblem problem = to_problem(what_if, facts);
      OrderProblem seen = problem;  // by the generator: times only where it decides by them
      if (!facts.needs_costs) {
        seen.times.clear();
        seen.hop = Duration{0};
      }
      const ReferenceTimes times =
          time_orders(make_orders(facts.kind, seen), problem, facts.placement);
      const WhatIfInputs inputs = make_what_if(what_if);
      const WhatIfAnswer answer = answer_what_if(inputs);
      EXPECT_EQ(answer.makespan.count(), times.makespan);
      EXPECT_EQ(answer.span.count(), times.span);
      EXPECT_EQ(answer.peak_chunks, times.peak_chunks);
    }
  }
}

// Each stage stashes one byte, so the bytes held over time are the chunks counted along the list.
TEST(LowerSchedules, MemoryOverTimeIsWhatTheListsCount) {
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(schedule_name(facts.kind));
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const WhatIfInputs inputs = make_what_if(random_question(random, facts));
      const std::vector<int> peaks = answer_what_if(inputs).peak_chunks;
      const PlanSimulation simulation =
          simulate_plan(inputs.plan, {inputs.profile, inputs.cluster});
      for (std::size_t d = 0; d < peaks.size(); ++d) {
        const Bytes stash = simulation.memory[d].held[static_cast<std::size_t>(MemoryKind::kStash)];
        EXPECT_EQ(stash.count, peaks[d]) << "device " << d;
      }
    }
  }
}

TEST(LowerSchedules, EveryScheduleOfAPlanIsValid) {
  for (const ScheduleFacts& facts : all_schedules()) {
    SCOPED_TRACE(schedule_name(facts.kind));
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const WhatIfInputs inputs = make_what_if(random_question(random, facts));
      const Setting setting{inputs.profile, inputs.cluster};
      const auto devices = static_cast<int>(inputs.cluster.devices.size());
      EXPECT_NO_THROW(validate(inputs.plan, setting, "plan"));
      EXPECT_NO_THROW(validate_schedule(make_schedule(inputs.plan, devices, setting), inputs.plan,
                                        find_activity(inputs.profile, inputs.plan.mask),
                                        "schedule"));
    }
  }
}

// Makes two layers on two devices: F 10, I 20, W 30, a stash of 100 and a boundary of 8 per sample.
Plan two_stages(const ModelProfile& profile, int micro_batches) {
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = micro_batches;
  plan.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  return plan;
}

ModelProfile two_layers() {
  ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(20), nanoseconds(30));
  for (Layer& layer : profile.layers) {
    for (CostSample& cost : layer.costs) {
      cost.forward_frozen = nanoseconds(7);
      cost.stash = Bytes{100} * cost.micro_batch_size;
    }
  }
  profile.edges[0].tensor_bytes_per_sample = {Bytes{8}};
  profile.input_bytes_per_sample = Bytes{5};
  return profile;
}

TEST(LowerSchedules, AStageThatRecomputesKeepsItsInputsAndRunsItsForwardTwice) {
  const ModelProfile profile = two_layers();
  const Cluster cluster = make_uniform_cluster(2, Bytes{1'000'000}, {});
  Plan plan = two_stages(profile, 3);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  const PlanSimulation keeps = simulate_plan(plan, {profile, cluster});
  plan.pipelines[0].stages[0].memory = MemoryPolicy::kRecompute;
  const PlanSimulation recomputes = simulate_plan(plan, {profile, cluster});
  const auto stash = [](const PlanSimulation& simulation, std::size_t device) {
    return simulation.memory[device].held[static_cast<std::size_t>(MemoryKind::kStash)].count;
  };
  EXPECT_EQ(stash(keeps, 0), 3 * 100);
  EXPECT_EQ(stash(recomputes, 0), 3 * 5 + 95) << "three inputs, and the rest of one stash";
  EXPECT_EQ(stash(recomputes, 1), 3 * 100);
  // An F that does not save takes 7, R is the F that saves, and the first layer has W alone.
  EXPECT_EQ(busy(keeps.timeline, DeviceId{0}), nanoseconds(3 * (10 + 30)));
  EXPECT_EQ(busy(recomputes.timeline, DeviceId{0}), nanoseconds(3 * (7 + 10 + 30)));
}

TEST(LowerSchedules, APairTakesBothTimesAndDeliversBothAtItsEnd) {
  const ModelProfile profile = two_layers();
  const Cluster cluster = make_uniform_cluster(2, Bytes{1'000'000}, {});
  Plan plan = two_stages(profile, 2);
  plan.schedule = ExplicitSchedule{
      parse_schedule("d0: 0F0 0F1 0B0 0B1\nd1: 1F0 (1F1;1B0)OVERLAP_F_B 1B1\n", "text").devices};
  const PlanSimulation simulation = simulate_plan(plan, {profile, cluster});
  // The span of 1F0 is 10..20; the pair waits for 0F1 (20) and takes 60; then 0B0 and 1B1 start at
  // 80.
  const auto find = [&](const std::string& text) {
    return *std::find_if(simulation.timeline.spans.begin(), simulation.timeline.spans.end(),
                         [&](const Span& span) { return to_text(span.action) == text; });
  };
  EXPECT_EQ(find("(1F1;1B0)OVERLAP_F_B").start, TimePoint(nanoseconds(20)));
  EXPECT_EQ(find("(1F1;1B0)OVERLAP_F_B").end, TimePoint(nanoseconds(80)));
  EXPECT_EQ(find("0B0").start, TimePoint(nanoseconds(80)));
  EXPECT_EQ(find("1B1").start, TimePoint(nanoseconds(80)));
}

TEST(LowerSchedules, PipeDreamKeepsAWeightVersionPerMicroBatchInFlight) {
  WhatIf what_if;
  what_if.stages = 4;
  what_if.micro_batches = 8;
  what_if.forward = what_if.backward_input = what_if.backward_weight = {nanoseconds(10)};
  const auto parameters = [&](ScheduleKind kind) {
    what_if.schedule = kind;
    const WhatIfInputs inputs = make_what_if(what_if);
    std::vector<std::int64_t> held;
    for (const MemoryPeak& peak :
         simulate_plan(inputs.plan, {inputs.profile, inputs.cluster}).memory) {
      held.push_back(peak.held[static_cast<std::size_t>(MemoryKind::kParameters)].count);
    }
    return held;
  };
  // One byte per layer; stage 0 has two layers.
  EXPECT_EQ(parameters(ScheduleKind::kOneForwardOneBackward),
            (std::vector<std::int64_t>{2, 1, 1, 1}));
  EXPECT_EQ(parameters(ScheduleKind::kPipeDream), (std::vector<std::int64_t>{8, 3, 2, 1}));
  EXPECT_EQ(parameters(ScheduleKind::kPipeDream2Bw), (std::vector<std::int64_t>{4, 2, 2, 2}));
}

TEST(LowerSchedules, PipeDreamTakesOnePipelineAndNoGlobalNorm) {
  const ModelProfile profile = two_layers();
  const Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, {});
  Plan plan = two_stages(profile, 4);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream};
  plan.versions = WeightVersions::kStash;
  EXPECT_NO_THROW(simulate_plan(plan, {profile, cluster}));
  EXPECT_THROW(simulate_plan(plan, {profile, cluster}, {.clip = true}), InfeasibleError) << "clip";
  plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{1}}};
  plan.pipelines.push_back(make_pipeline(2, {LayerId{1}}, {DeviceId{2}, DeviceId{3}},
                                         {MicroBatchId{2}, MicroBatchId{3}}));
  EXPECT_THROW(simulate_plan(plan, {profile, cluster}), InfeasibleError) << "two pipelines";
}

TEST(LowerSchedules, PipeDreamKeepsNoMoreVersionsThanMicroBatches) {
  const ModelProfile profile = two_layers();
  const Cluster cluster = make_uniform_cluster(2, Bytes{1'000'000}, {});
  Plan plan = two_stages(profile, 4);
  plan.versions = WeightVersions::kStash;
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream, .in_flight = 1'000'000};
  const Bytes once = profile.layers[0].parameters;
  const PlanSimulation simulation = simulate_plan(plan, {profile, cluster});
  EXPECT_EQ(simulation.memory[0].held[static_cast<std::size_t>(MemoryKind::kParameters)], once * 2)
      << "all forwards read the first version, and the updates after them make the second";
  EXPECT_EQ(simulation.memory[0].held[static_cast<std::size_t>(MemoryKind::kGradients)], once)
      << "each gradient is gone with its update";
}

TEST(LowerSchedules, TimesThatAddUpPastTheClockAreRefused) {
  WhatIf what_if;
  what_if.stages = 4;
  what_if.micro_batches = 100;
  what_if.forward = {std::chrono::seconds(1000)};
  what_if.backward_input = what_if.backward_weight = {nanoseconds(10)};
  WhatIfInputs inputs = make_what_if(what_if);
  EXPECT_NO_THROW(simulate_what_if(inputs));
  for (Layer& layer : inputs.profile.layers) layer.costs.front().forward *= 1'000'000;
  EXPECT_THROW(simulate_what_if(inputs), InfeasibleError);
  what_if.schedule = ScheduleKind::kZb1p;
  what_if.forward = what_if.backward_input =
      what_if.backward_weight = {std::chrono::seconds(2'000'000)};
  EXPECT_THROW(simulate_what_if(make_what_if(what_if)), InfeasibleError);
}

TEST(LowerSchedules, PipeDreamUpdatesAfterEveryBackward) {
  WhatIf what_if;
  what_if.stages = 2;
  what_if.micro_batches = 3;
  what_if.schedule = ScheduleKind::kPipeDream;
  what_if.forward = what_if.backward_input = what_if.backward_weight = {nanoseconds(10)};
  const WhatIfInputs inputs = make_what_if(what_if);
  EXPECT_EQ(to_text(make_schedule(inputs.plan, 2)),
            "d0: 0F0 0F1 0B0 0U 0F2 0B1 0U 0B2 0U\n"
            "d1: 1F0 1B0 1U 1F1 1B1 1U 1F2 1B2 1U\n");
}

}  // namespace
}  // namespace frazil
