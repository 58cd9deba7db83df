// Tests plans over a forecast of masks.

#include "planner/trajectory/plan_trajectory.h"

#include <gtest/gtest.h>

#include "planner/prediction/simulate_plan.h"
#include "planner/search/search.h"
#include "profiles/error.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

const ModelProfile& chain() {
  static const ModelProfile profile =
      make_chain(8, microseconds{100}, microseconds{100}, microseconds{100});
  return profile;
}

FreezeTrace trace_of(const std::vector<std::pair<Step, std::string>>& masks, Step steps) {
  FreezeTrace trace;
  trace.blocks.assign(8, "block");
  trace.steps = steps;
  for (const auto& [step, mask] : masks) {
    FreezeEvent& event = trace.events.emplace_back();
    event.step = step;
    event.what = MaskEvent{FreezeMask::parse(mask, "test", 1)};
  }
  return trace;
}

Cluster cluster_of(int devices, Bytes memory = Bytes{1 << 30}) {
  return make_uniform_cluster(devices, memory, {microseconds{2}, BytesPerSecond{1'000'000'000}});
}

// Makes devices of which none has room for the whole model until most of it is frozen.
const Cluster& small_cluster() {
  static const Cluster cluster = cluster_of(4, Bytes{30'000});
  return cluster;
}

TrajectoryOptions options_of(Duration start) {
  TrajectoryOptions options;
  options.search.batch_size = 8;
  options.search.micro_batch_sizes = {1};
  options.overhead.start = start;
  return options;
}

TEST(PlanTrajectory, StaysWhereASwitchNeverPaysAndSwitchesWhereItDoes) {
  const auto segments =
      find_segments(trace_of({{100, "00001111"}, {200, "00000011"}}, 100'000), "t");
  const auto dear =
      plan_trajectory({chain(), small_cluster()}, segments, options_of(seconds{100'000}));
  EXPECT_TRUE(dear.transitions.empty());
  EXPECT_EQ(dear.best, *dear.held);
  const auto cheap =
      plan_trajectory({chain(), small_cluster()}, segments, options_of(microseconds{1}));
  EXPECT_FALSE(cheap.transitions.empty());
  EXPECT_LT(cheap.best.total, cheap.held->total);
  EXPECT_LE(cheap.best.total, cheap.greedy->total);
}

TEST(PlanTrajectory, TellsTheStepAtWhichASwitchHasPaid) {
  const auto segments = find_segments(trace_of({{100, "00000011"}}, 100'000), "t");
  const auto planned =
      plan_trajectory({chain(), small_cluster()}, segments, options_of(seconds{1}));
  ASSERT_EQ(planned.transitions.size(), 1U);
  const PlannedTransition& change = planned.transitions[0];
  const Duration saved = planned.step_times[1][change.from] - planned.step_times[1][change.to];
  ASSERT_TRUE(change.break_even.has_value());
  EXPECT_GE(saved * *change.break_even, change.cost.total);
  EXPECT_LT(saved * (*change.break_even - 1), change.cost.total);
}

// Neither the whole model nor half of it fits on a device until layers freeze.
TEST(PlanTrajectory, IsForcedWhereMemoryDoesNotLastAndRefusesWhatNeverFits) {
  const auto segments = find_segments(trace_of({{10, "00000011"}, {20, "11111111"}}, 30), "t");
  TrajectoryOptions options = options_of(microseconds{1});
  options.search.schedules = {ScheduleKind::kOneForwardOneBackward};
  const Cluster tight = cluster_of(4, Bytes{22'000});
  const auto planned = plan_trajectory({chain(), tight}, segments, options);
  for (std::size_t k = 0; k < segments.size(); ++k) {
    Plan plan = planned.candidates[planned.best.states[k]];
    plan.mask = segments[k].mask;
    const PlanSimulation step = simulate_plan(plan, {chain(), tight});
    EXPECT_FALSE(find_overflow(step.memory, tight).has_value()) << "segment " << k;
    EXPECT_EQ(step.makespan, planned.step_times[k][planned.best.states[k]]);
  }
  const Cluster too_small = cluster_of(4, Bytes{9'000});
  EXPECT_THROW(plan_trajectory({chain(), too_small}, segments, options), InfeasibleError);
}

TEST(PlanTrajectory, WithoutAForecastStaysWithinItsBound) {
  const auto segments =
      find_segments(trace_of({{300, "00001111"}, {600, "11111111"}, {900, "00000011"}}, 2000), "t");
  const auto planned =
      plan_trajectory({chain(), small_cluster()}, segments, options_of(microseconds{20'000}));
  ASSERT_TRUE(planned.online.has_value());
  EXPECT_LE(planned.online->hindsight, planned.online->paid);
  EXPECT_EQ(planned.online->factor, 2 * planned.online->candidates - 1);
  EXPECT_LE(planned.online->paid,
            planned.online->hindsight * static_cast<int>(planned.online->factor) +
                planned.online->additive);
}

// Asked about one mask, a search of the cuts finds no faster plan than the forecast has.
TEST(PlanTrajectory, ChoosesAmongPlansWhoseCutsAreSearched) {
  int faster = 0;
  for (std::uint64_t seed = 6000; seed < 6040; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SearchQuestion question = draw_search_question(seed);
    question.options.cache = false;
    const auto segments = std::vector<ForecastSegment>{{0, 10, question.options.mask}};
    TrajectoryOptions options{.search = question.options, .plans_per_mask = 1};
    options.search.keep = kKeptPlans;
    const auto step = [&](std::int64_t effort) {
      options.search.cut_effort = effort;
      return plan_trajectory({question.profile, question.cluster}, segments, options).best.total /
             10;
    };
    const auto best = [&](std::int64_t effort) {
      SearchOptions search = options.search;
      search.cut_effort = effort;
      return search_plans({question.profile, question.cluster}, search);
    };
    if (best(0).best() == nullptr) continue;
    EXPECT_EQ(step(0), best(0).best()->makespan);
    EXPECT_EQ(step(kCutEffort), best(kCutEffort).best()->makespan);
    faster += step(kCutEffort) < step(0) ? 1 : 0;
  }
  EXPECT_GT(faster, 0);
}

// A planner that is asked again answers as a new one does. The free choice of the first plan is the
// best of all plans that can be held before; the transition from any of them is paid for.
TEST(TrajectoryPlanner, CountsTheTransitionFromThePlanHeldBefore) {
  const auto segments =
      find_segments(trace_of({{50, "00001111"}, {100, "00000011"}, {160, "00111111"}}, 300), "t");
  const Setting setting{chain(), small_cluster()};
  for (const bool caches : {false, true}) {
    SCOPED_TRACE(caches);
    TrajectoryOptions options = options_of(microseconds{900});
    const CacheTier memory{Bytes{1'000'000}, {Duration{0}, BytesPerSecond{8'000'000'000}}};
    if (caches) options.store = FeatureStore{160, memory, {Bytes{0}, memory.link}};
    TrajectoryPlanner planner(setting, segments, options);
    (void)planner.plan({});
    const PlannedTrajectory free = planner.plan(options.overhead);
    EXPECT_EQ(free.best, plan_trajectory(setting, segments, options).best);
    Duration least = kFarAway;
    for (std::size_t held = 0; held < free.candidates.size(); ++held) {
      const Plan& before = free.candidates[held];
      const PlannedTrajectory planned = planner.plan(options.overhead, held);
      const auto cost_to = [&](std::size_t to) {
        return price_transition(before, free.candidates[to], setting,
                                find_activity(chain(), segments[0].mask), options.overhead)
            .total;
      };
      EXPECT_GE(planned.best.total, free.best.total);
      EXPECT_LE(planned.best.total, free.best.total + cost_to(free.best.states[0]));
      least = std::min(least, planned.best.total);
      TrajectoryOptions asked = options;
      asked.before = TrajectoryOptions::Before{before, segments[0].mask};
      EXPECT_EQ(plan_trajectory(setting, segments, asked).best.total, planned.best.total);
      if (caches) continue;
      Duration total = cost_to(planned.best.states[0]);
      for (std::size_t k = 0; k < segments.size(); ++k) {
        total += planned.step_times[k][planned.best.states[k]] * segments[k].steps;
      }
      for (const PlannedTransition& change : planned.transitions) total += change.cost.total;
      EXPECT_EQ(total, planned.best.total);
    }
    EXPECT_EQ(least, free.best.total);
  }
}

TEST(PlanTrajectory, IsTheSameOnEveryRun) {
  const auto segments = find_segments(trace_of({{100, "00001111"}}, 1000), "t");
  const Cluster cluster = cluster_of(4);
  const auto once = plan_trajectory({chain(), cluster}, segments, options_of(seconds{1}));
  const auto again = plan_trajectory({chain(), cluster}, segments, options_of(seconds{1}));
  EXPECT_EQ(once.best, again.best);
  EXPECT_EQ(once.candidates, again.candidates);
  EXPECT_EQ(once.step_times, again.step_times);
}

}  // namespace
}  // namespace frazil
