#include "planner/lowering/lower.h"
#include "planner/prediction/simulate_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "sim/collective_cost.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

constexpr Bytes kPlenty{1'000'000'000};

WhatIf make_question(ScheduleKind kind, int stages, int micro_batches,
                     const std::vector<Duration>& forward, const std::vector<Duration>& backward,
                     Duration hop) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = kind;
  what_if.forward = forward;
  what_if.backward_input = backward;
  what_if.backward_weight = {Duration{0}};
  what_if.hop = hop;
  return what_if;
}

Duration simulated(const WhatIf& what_if) {
  const WhatIfInputs inputs = make_what_if(what_if);
  return simulate_plan(inputs.plan, {inputs.profile, inputs.cluster}).makespan;
}

// Follows the schedules' own definition, without a graph: the time of each action is raised until
// no order of a list and no message contradicts it.
Duration relax_lists(const WhatIf& what_if) {
  const auto p = static_cast<std::size_t>(what_if.stages);
  const auto m = static_cast<std::size_t>(what_if.micro_batches);
  std::vector<std::vector<std::pair<bool, std::size_t>>> lists(p);  // (is forward, micro-batch)
  for (std::size_t s = 0; s < p; ++s) {
    const bool gpipe = what_if.schedule == ScheduleKind::kGpipe;
    const std::size_t ahead = gpipe ? m : std::min(m, p - s);
    for (std::size_t i = 0; i < ahead; ++i) lists[s].emplace_back(true, i);
    for (std::size_t i = 0; i < m; ++i) {
      lists[s].emplace_back(false, i);
      if (i + ahead < m) lists[s].emplace_back(true, i + ahead);
    }
  }
  const std::vector<std::vector<Duration>> zero(p, std::vector<Duration>(m));
  std::vector<std::vector<Duration>> forward = zero;
  std::vector<std::vector<Duration>> backward = zero;
  Duration latest{0};
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t s = 0; s < p; ++s) {
      Duration now{0};
      for (const auto& [is_forward, i] : lists[s]) {
        Duration start = now;
        if (is_forward && s > 0) start = std::max(start, forward[s - 1][i] + what_if.hop);
        if (!is_forward && s + 1 < p) start = std::max(start, backward[s + 1][i] + what_if.hop);
        now = start + (is_forward ? what_if.forward[s] : what_if.backward_input[s]);
        Duration& end = (is_forward ? forward : backward)[s][i];
        changed = changed || end != now;
        end = now;
        latest = std::max(latest, now);
      }
    }
  }
  return latest;
}

Plan make_plan(const ModelProfile& profile, int batch, int size, const std::vector<int>& cuts,
               int replicas, ScheduleKind kind) {
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = batch;
  plan.micro_batch_size = size;
  plan.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  plan.schedule = NamedSchedule{.kind = kind, .in_flight = {}};
  std::vector<LayerId> ids;
  for (const int cut : cuts) ids.emplace_back(cut);
  const int stages = static_cast<int>(cuts.size()) + 1;
  const int share = plan.micro_batches() / replicas;
  for (int r = 0; r < replicas; ++r) {
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) devices.emplace_back(r * stages + s);
    const int last = r + 1 == replicas ? plan.micro_batches() - 1 : (r + 1) * share - 1;
    plan.pipelines.push_back(make_pipeline(static_cast<int>(profile.layers.size()), ids, devices,
                                           {MicroBatchId{r * share}, MicroBatchId{last}}));
  }
  return plan;
}

const Span* find_span(const Timeline& timeline, const std::string& action, int device) {
  for (const Span& span : timeline.spans) {
    if (span.device.value == device && to_text(span.action) == action) return &span;
  }
  return nullptr;
}

TEST(Lower, GpipeEqualsItsClosedFormWithAndWithoutHop) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int p = static_cast<int>(random() % 8) + 1;
    const int m = static_cast<int>(random() % 20) + 1;
    const Duration f{random() % 1'000'000 + 1};
    const Duration b{random() % 1'000'000 + 1};
    const Duration c{seed % 2 == 0 ? 0 : random() % 500'000};
    EXPECT_EQ(simulated(make_question(ScheduleKind::kGpipe, p, m, {f}, {b}, c)),
              (m + p - 1) * (f + b) + 2 * (p - 1) * c);
  }
}

TEST(Lower, OneForwardOneBackwardEqualsItsClosedFormWithoutHop) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int p = static_cast<int>(random() % 8) + 1;
    const int m = static_cast<int>(random() % 20) + 1;
    const Duration f{random() % 1'000'000 + 1};
    const Duration b{random() % 1'000'000 + 1};
    EXPECT_EQ(simulated(make_question(ScheduleKind::kOneForwardOneBackward, p, m, {f}, {b}, {})),
              (m + p - 1) * (f + b));
  }
}

// A hop makes each round of p micro-batches wait for its way down and back. Where p >= 2 divides m
// the form holds for hops of any length, small against T or many times as long.
TEST(Lower, OneForwardOneBackwardEqualsItsClosedFormWithAHopWhenStagesDivideMicroBatches) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int p = static_cast<int>(random() % 7) + 2;
    const int m = p * (static_cast<int>(random() % 5) + 1);
    const Duration f{random() % 1'000'000 + 1};
    const Duration b{random() % 1'000'000 + 1};
    const Duration c{random() % (seed % 2 == 0 ? 100'000 : 20'000'000)};
    EXPECT_EQ(simulated(make_question(ScheduleKind::kOneForwardOneBackward, p, m, {f}, {b}, c)),
              (m + p - 1) * (f + b) + (2 * m / p * (p - 1) + 2 * (p - 2)) * c);
  }
}

TEST(Lower, UnequalStagesEqualAnIndependentRelaxation) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int p = static_cast<int>(random() % 7) + 1;
    const int m = static_cast<int>(random() % 16) + 1;
    std::vector<Duration> forward;
    std::vector<Duration> backward;
    for (int s = 0; s < p; ++s) {
      forward.emplace_back(random() % 1'000);
      backward.emplace_back(random() % 1'000 + 1);
    }
    const Duration hop{random() % 300};
    for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
      const WhatIf what_if = make_question(kind, p, m, forward, backward, hop);
      EXPECT_EQ(simulated(what_if), relax_lists(what_if));
    }
  }
}

TEST(Lower, AFrozenPrefixHasNoBackwardNoStashAndNoUpdate) {
  ModelProfile profile = make_chain(4, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  for (Layer& layer : profile.layers) {
    for (CostSample& cost : layer.costs) cost.forward_frozen = cost.forward * 4 / 5;
  }
  const Cluster cluster = make_uniform_cluster(2, kPlenty, {});
  Plan plan = make_plan(profile, 3, 1, {2}, 1, ScheduleKind::kGpipe);
  plan.mask = FreezeMask::frozen_prefix(4, BlockId{1});
  const PlanSimulation simulation = simulate_plan(plan, {profile, cluster});
  // Stage 0 runs three frozen F of 16; stage 1 runs three F of 20 and three B of W (alone), I and
  // W.
  EXPECT_EQ(simulation.makespan, nanoseconds(16 + 3 * 20 + 3 * 30));
  EXPECT_EQ(find_span(simulation.timeline, "0B0", 0), nullptr);
  EXPECT_EQ(find_span(simulation.timeline, "0U", 0), nullptr);
  const auto stash = static_cast<std::size_t>(MemoryKind::kStash);
  EXPECT_EQ(simulation.memory[0].held[stash], Bytes{0});
  EXPECT_EQ(simulation.memory[1].held[stash], Bytes{3 * 200});
}

TEST(Lower, AFrozenLayerBeforeOthersOfItsStageHasItsReceiveBufferDuringItsForward) {
  const ModelProfile profile = make_chain(4, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  Plan plan = make_plan(profile, 3, 1, {1}, 1, ScheduleKind::kGpipe);
  plan.mask = FreezeMask::frozen_prefix(4, BlockId{1});
  const Cluster cluster = make_uniform_cluster(2, kPlenty, {});
  const MemoryPeak peak = simulate_plan(plan, {profile, cluster}).memory[1];
  // The last F is the peak: it holds the 10 bytes of one message, while two layers stash for three
  // micro-batches.
  EXPECT_EQ(peak.held[static_cast<std::size_t>(MemoryKind::kReceive)], Bytes{10});
  EXPECT_EQ(peak.held[static_cast<std::size_t>(MemoryKind::kStash)], Bytes{3 * 200});
}

TEST(Lower, AShortLastMicroBatchCostsItsOwnSize) {
  const ModelProfile profile = make_chain(1, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  const Cluster cluster = make_uniform_cluster(1, kPlenty, {});
  const Plan plan = make_plan(profile, 10, 4, {}, 1, ScheduleKind::kGpipe);
  const PlanSimulation simulation = simulate_plan(plan, {profile, cluster});
  // The only layer has no I, so it runs F and W alone, of 4, 4 and 2 samples.
  EXPECT_EQ(simulation.makespan, nanoseconds(20 * 10));
  EXPECT_EQ(find_span(simulation.timeline, "0F2", 0)->duration(), nanoseconds(20));
}

TEST(Lower, ASendHoldsItsLinkAndTheMessageArrivesALatencyLater) {
  const ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  // A message of 10 bytes at 0.1 bytes per ns holds the link for 100 ns.
  const Cluster cluster =
      make_uniform_cluster(2, kPlenty, {nanoseconds(7), BytesPerSecond{100'000'000}});
  const Plan plan = make_plan(profile, 2, 1, {1}, 1, ScheduleKind::kGpipe);
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  const auto start = [&](const char* action, int device) {
    return find_span(timeline, action, device)->start.time_since_epoch();
  };
  EXPECT_EQ(start("0SEND_F0", 0), nanoseconds(10));
  EXPECT_EQ(start("0SEND_F1", 0), nanoseconds(110));
  EXPECT_EQ(start("1F0", 1), nanoseconds(117));
  EXPECT_EQ(start("1F1", 1), nanoseconds(217));
}

TEST(Lower, LinksWithoutBandwidthGiveTheSameTimesWithAndWithoutSendTasks) {
  const ModelProfile profile = make_chain(6, nanoseconds(10), nanoseconds(20), nanoseconds(5));
  const Plan plan = make_plan(profile, 8, 1, {2, 4}, 1, ScheduleKind::kOneForwardOneBackward);
  const Cluster folded = make_uniform_cluster(4, kPlenty, {nanoseconds(3), {}});
  Cluster with_tasks = folded;
  // Links with a bandwidth lead to device 3, but nothing crosses them.
  for (int d = 0; d < 3; ++d) {
    with_tasks.links.push_back({DeviceId{d}, DeviceId{3}, {nanoseconds(3), BytesPerSecond{1}}});
  }
  EXPECT_EQ(simulate_plan(plan, {profile, folded}).timeline,
            simulate_plan(plan, {profile, with_tasks}).timeline);
}

TEST(Lower, ReplicasReduceTogetherAfterTheLastBackwardOfEach) {
  ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  for (Layer& layer : profile.layers) layer.update = nanoseconds(4);
  const Cluster cluster =
      make_uniform_cluster(2, kPlenty, {nanoseconds(50), BytesPerSecond{1'000'000'000}});
  // Device 0 owns one node of the tree ((0+1)+2), its only micro-batch. Device 1 owns two nodes,
  // because its micro-batches 1 and 2 are not children of one node.
  const Plan plan = make_plan(profile, 3, 1, {}, 2, ScheduleKind::kGpipe);
  const PlanSimulation simulation = simulate_plan(plan, {profile, cluster});
  const Collective collective{
      CollectiveKind::kExactTreeAllReduce, {DeviceId{0}, DeviceId{1}}, Bytes{2000}, {1, 2}};
  const Duration reduction = collective_cost(collective, cluster).time;
  const Duration compute = 2 * nanoseconds(20 + 10 + 20);
  for (int device = 0; device < 2; ++device) {
    const std::string prefix = device == 0 ? "" : "1:";
    const Span* reduce = find_span(simulation.timeline, prefix + "0REDUCE_GRAD", device);
    ASSERT_NE(reduce, nullptr);
    EXPECT_EQ(reduce->start.time_since_epoch(), compute);
    EXPECT_EQ(reduce->duration(), reduction);
  }
  EXPECT_EQ(simulation.makespan, compute + reduction + nanoseconds(8));
}

TEST(Lower, UnequalReplicasReduceEachGroupOfLayersAmongItsOwners) {
  const ModelProfile profile = make_chain(4, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  const Cluster cluster = make_uniform_cluster(4, kPlenty, {nanoseconds(1), {}});
  Plan plan = make_plan(profile, 4, 1, {2}, 2, ScheduleKind::kOneForwardOneBackward);
  plan.pipelines[1].stages[0].layers = {{LayerId{0}, LayerId{0}}};
  plan.pipelines[1].stages[1].layers = {{LayerId{1}, LayerId{3}}};
  int reductions[4] = {0, 0, 0, 0};
  for (const Span& span : simulate_plan(plan, {profile, cluster}).timeline.spans) {
    if (span.action.kind == ActionKind::kReduceGradients) ++reductions[span.device.index()];
  }
  // Layers 2-3 are reduced among devices 1 and 3, layer 1 among 0 and 3, layer 0 among 0 and 2.
  EXPECT_EQ(reductions[0], 2);
  EXPECT_EQ(reductions[1], 1);
  EXPECT_EQ(reductions[2], 1);
  EXPECT_EQ(reductions[3], 2);
}

TEST(Lower, AClippedStepUpdatesNothingBeforeAllGradientsAreThere) {
  ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  for (Layer& layer : profile.layers) layer.update = nanoseconds(5);
  const Cluster cluster = make_uniform_cluster(2, kPlenty, {});
  const Plan plan = make_plan(profile, 2, 1, {1}, 1, ScheduleKind::kOneForwardOneBackward);
  const Timeline free = simulate_plan(plan, {profile, cluster}, {.clip = false}).timeline;
  const Timeline clipped = simulate_plan(plan, {profile, cluster}, {.clip = true}).timeline;
  const TimePoint last_backward = find_span(clipped, "0B1", 0)->end;
  EXPECT_LT(find_span(free, "1U", 1)->start, last_backward);
  EXPECT_EQ(find_span(clipped, "1U", 1)->start, last_backward);
  EXPECT_EQ(find_span(clipped, "0U", 0)->start, last_backward);
}

TEST(Lower, ADeviceStartsAfterItsStepOverhead) {
  const ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  Cluster cluster = make_uniform_cluster(2, kPlenty, {});
  const Plan plan = make_plan(profile, 2, 1, {1}, 1, ScheduleKind::kGpipe);
  const Duration without = simulate_plan(plan, {profile, cluster}).makespan;
  cluster.devices[0].step_overhead = nanoseconds(100);
  const PlanSimulation simulation = simulate_plan(plan, {profile, cluster});
  EXPECT_EQ(simulation.makespan, without + nanoseconds(100));
  EXPECT_EQ(find_span(simulation.timeline, "0F0", 0)->start, TimePoint{nanoseconds(100)});
}

TEST(Lower, MemoryIsStateAndWhatMicroBatchesInFlightHold) {
  const ModelProfile profile = make_chain(4, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  const Cluster cluster = make_uniform_cluster(2, kPlenty, {});
  Plan plan = make_plan(profile, 8, 1, {2}, 1, ScheduleKind::kOneForwardOneBackward);
  plan.reduction = ReductionMode::kFast;
  const std::vector<MemoryPeak> memory = simulate_plan(plan, {profile, cluster}).memory;
  // Two layers hold 2000 bytes of parameters, 2000 of gradients and 4000 of optimizer state. Two
  // micro-batches are in flight on stage 0, one on stage 1, whose stash holds what arrived.
  EXPECT_EQ(memory[0].total, Bytes{8000 + 2 * 200});
  EXPECT_EQ(memory[1].total, Bytes{8000 + 200});
}

TEST(Lower, SplitBackwardWaitsForInputGradientsAndReleasesAtW) {
  const ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(20), nanoseconds(30));
  const Cluster cluster = make_uniform_cluster(2, kPlenty, {});
  Plan plan = make_plan(profile, 1, 1, {1}, 1, ScheduleKind::kGpipe);
  const MicroBatchId micro_batch{0};
  const auto action = [&](int stage, ActionKind kind) {
    return make_action(PipelineId{0}, StageId{stage}, kind, micro_batch);
  };
  plan.schedule =
      ExplicitSchedule{{{action(0, ActionKind::kForward), action(0, ActionKind::kBackwardWeight)},
                        {action(1, ActionKind::kForward), action(1, ActionKind::kBackwardInput),
                         action(1, ActionKind::kBackwardWeight)}}};
  const Timeline timeline = simulate_plan(plan, {profile, cluster}).timeline;
  EXPECT_EQ(find_span(timeline, "1I0", 1)->end, TimePoint{nanoseconds(40)});
  EXPECT_EQ(find_span(timeline, "0W0", 0)->start, TimePoint{nanoseconds(40)});
  EXPECT_EQ(find_span(timeline, "1W0", 1)->end, TimePoint{nanoseconds(70)});
}

TEST(Lower, RefusesAnActionItDoesNotKnow) {
  const ModelProfile profile = make_chain(1, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  const Cluster cluster = make_uniform_cluster(1, kPlenty, {});
  const Plan plan = make_plan(profile, 1, 1, {}, 1, ScheduleKind::kGpipe);
  const Schedule schedule{{{make_stage_action(PipelineId{0}, StageId{0}, ActionKind::kUnshard)}}};
  try {
    lower(plan, schedule, {profile, cluster}, find_activity(profile, plan.mask));
    FAIL() << "an unshard was taken";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("action 0UNSHARD is not interpreted"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace frazil
