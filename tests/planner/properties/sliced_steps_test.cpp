// Tests drawn plans of which some stages share micro-batches by samples, some in turn: times,
// messages, explanations, exports.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "planner/actions/deadlock.h"
#include "planner/actions/message_order.h"
#include "planner/interop/chakra.h"
#include "planner/prediction/idle_time.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "sim/cost_model.h"
#include "tests/planner/support/shared_plans.h"
#include "tests/planner/support/sliced_stages.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

struct SlicedStep {
  std::vector<int> devices;
  ModelProfile profile;
  Cluster cluster;
  Plan plan;
};

// Draws stages, some sliced and some in turn, with times by sample; only hops take time between the
// devices.
SlicedStep draw_sliced_step(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t most) { return static_cast<int>(random() % most) + 1; };
  SlicedStep drawn;
  for (int s = up_to(4); s > 0; --s) drawn.devices.push_back(up_to(3));
  drawn.profile = make_chain(static_cast<int>(drawn.devices.size()), {}, {}, {});
  for (Layer& layer : drawn.profile.layers) {
    layer.update = nanoseconds(4);
    const nanoseconds forward(up_to(50));
    const nanoseconds input(up_to(50));
    const nanoseconds weight(up_to(50));
    for (CostSample& cost : layer.costs) {
      cost.forward = cost.forward_frozen = forward * cost.micro_batch_size;
      cost.backward_input = input * cost.micro_batch_size;
      cost.backward_weight = cost.backward_weight_alone = weight * cost.micro_batch_size;
    }
  }
  drawn.cluster = make_uniform_cluster(count(drawn.devices), Bytes{1'000'000'000},
                                       {nanoseconds(up_to(30) - 1), {}});
  constexpr std::array kKinds{ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                              ScheduleKind::kEagerOneForwardOneBackward};
  drawn.plan = make_sliced_plan(drawn.devices, up_to(7), 2 + up_to(6), {kKinds[random() % 3]});
  drawn.plan.batch_size -= up_to(static_cast<std::uint64_t>(drawn.plan.micro_batch_size - 2)) - 1;
  for (Stage& stage : drawn.plan.pipelines[0].stages) {
    if (random() % 3 == 0) stage.axis = DeviceAxis::kData;
  }
  return drawn;
}

// Returns which of a stage's devices has a sample of a micro-batch.
int place_of(const Stage& stage, int m, int sample, int samples) {
  const auto devices = static_cast<int>(stage.devices.size());
  if (stage.axis == DeviceAxis::kData) return m % devices;
  int k = 0;
  while ((k + 1) * samples < (sample + 1) * devices) ++k;
  return k;
}

using SliceEnds = std::map<std::tuple<bool, int, int, int>, Duration>;  // forward, stage, place, m

// An oracle without a graph raises the end of each action until neither its list nor any of its
// samples contradicts it.
SliceEnds relax_sliced_lists(const SlicedStep& drawn) {
  const std::vector<Stage>& stages = drawn.plan.pipelines[0].stages;
  const auto& layers = drawn.profile.layers;
  const Duration hop = drawn.cluster.default_link.latency;
  const Schedule made = make_schedule(drawn.plan, count(drawn.devices));
  SliceEnds ends;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t d = 0; d < made.devices.size(); ++d) {
      Duration now{0};
      for (const Action& action : made.devices[d]) {
        const bool forward = action.kind == ActionKind::kForward;
        const int s = action.stage.value;
        const int m = action.micro_batches->first.value;
        const Stage& stage = stages[action.stage.index()];
        const auto place =
            static_cast<int>(std::find(stage.devices.begin(), stage.devices.end(), DeviceId{d}) -
                             stage.devices.begin());
        const int all = samples_in(drawn.plan, MicroBatchId{m});
        const int peer = forward ? s - 1 : s + 1;
        int own = 0;
        for (int sample = 0; sample < all; ++sample) {
          if (place_of(stage, m, sample, all) != place) continue;
          ++own;
          if (peer < 0 || peer == static_cast<int>(stages.size())) continue;
          const int from = place_of(stages[static_cast<std::size_t>(peer)], m, sample, all);
          now = std::max(now, ends[{forward, peer, from, m}] + hop);
        }
        const CostSample& cost = layers[action.stage.index()].costs.front();
        now += own * (forward ? cost.forward
                              : cost.backward_weight + (s > 0 ? cost.backward_input : Duration{0}));
        Duration& end = ends[{forward, s, place, m}];
        changed = changed || end != now;
        end = now;
      }
    }
  }
  return ends;
}

TEST(SlicedSteps, DoEverySampleOnceAtTheTimesOfAnIndependentRelaxation) {
  int sliced = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const SlicedStep drawn = draw_sliced_step(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(drawn.plan));
    sliced += has_sliced_stage(drawn.plan.pipelines[0]) ? 1 : 0;
    SliceEnds found;
    for (const Span& span :
         simulate_plan(drawn.plan, {drawn.profile, drawn.cluster}).timeline.spans) {
      const bool forward = span.action.kind == ActionKind::kForward;
      if (!forward && span.action.kind != ActionKind::kBackward) continue;
      const int stage = span.action.stage.value;
      const int m = span.action.micro_batches->first.value;
      const auto first = std::accumulate(drawn.devices.begin(), drawn.devices.begin() + stage, 0);
      const int place = span.device.value - first;
      EXPECT_EQ(span.action.slice.value_or(place), place);
      EXPECT_TRUE(
          found.emplace(std::tuple(forward, stage, place, m), span.end.time_since_epoch()).second);
    }
    EXPECT_EQ(found, relax_sliced_lists(drawn));
  }
  EXPECT_GT(sliced, 250);
}

TEST(SlicedSteps, ComeThroughHoweverTheirMessagesAreHandedOver) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const SlicedStep drawn = draw_sliced_step(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(drawn.plan));
    const Activity activity = find_activity(drawn.profile, drawn.plan.mask);
    const Schedule completed = complete_schedule(make_schedule(drawn.plan, count(drawn.devices)),
                                                 drawn.plan, drawn.profile, activity);
    ASSERT_EQ(find_deadlock(completed, MessageLowering::kEagerReceive), std::nullopt);
    Schedule ordered;
    ASSERT_NO_THROW(ordered = order_receives(completed)) << to_text(completed);
    for (const auto lowering : {MessageLowering::kEagerReceive, MessageLowering::kJustInTime,
                                MessageLowering::kGrouped}) {
      ASSERT_EQ(find_deadlock(ordered, lowering), std::nullopt) << to_text(ordered);
    }
  }
}

TEST(SlicedSteps, AreExplainedExportedAndOverlappedLikeAnyOther) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SlicedStep drawn = draw_sliced_step(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + summarize(drawn.plan));
    if (seed % 2 == 0) drawn.cluster.default_link.bandwidth = BytesPerSecond{500'000'000};
    if (seed % 3 == 0) drawn.plan.pipelines[0].stages[0].memory = MemoryPolicy::kRecompute;
    const SimulatedStep step = simulate_step(drawn.plan, {drawn.profile, drawn.cluster});
    const Prices prices = price_all(step.lowered.graph, {drawn.profile, drawn.cluster});
    for (const DeviceTime& time :
         split_makespan(step.lowered, step.simulation, prices.of_work, count(drawn.devices))) {
      EXPECT_EQ(total(time), step.simulation.makespan);
    }
    EXPECT_EQ(to_chakra(step, drawn.plan, {drawn.profile, drawn.cluster}).files.size(),
              static_cast<std::size_t>(count(drawn.devices)));
    if (!has_sliced_stage(drawn.plan.pipelines[0])) continue;
    std::map<DeviceId, TimePoint> reduced;
    for (const Span& span : simulate_plan(drawn.plan, {drawn.profile, drawn.cluster},
                                          {.overlap = ReductionOverlap{Bytes{500}}})
                                .timeline.spans) {
      if (span.action.kind == ActionKind::kReduceGradients) {
        reduced[span.device] = std::max(reduced[span.device], span.end);
      }
      if (span.action.kind == ActionKind::kUpdate && reduced.contains(span.device)) {
        EXPECT_GE(span.start, reduced.at(span.device));
      }
    }
    // A reduction that takes no time has no span.
    if (drawn.cluster.default_link.latency > Duration{0}) {
      EXPECT_FALSE(reduced.empty());
    }
  }
}

TEST(SlicedSteps, AreDispatchedByEveryPolicyThatIsInterpreted) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SlicedStep drawn = draw_sliced_step(seed);
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
