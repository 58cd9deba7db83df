// Compares a trajectory that simulates only what its bounds leave open with one that simulates
// everything.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/trajectory/plan_trajectory.h"
#include "planner/trajectory/step_times.h"
#include "profiles/error.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

struct LazyCase {
  SearchQuestion question;
  std::vector<ForecastSegment> segments;
  TrajectoryOptions options;
};

LazyCase draw_lazy_case(std::uint64_t seed) {
  LazyCase drawn{draw_search_question(seed), {}, {}};
  std::mt19937_64 random(seed);
  const int blocks = drawn.question.options.mask.blocks();
  Step step = 0;
  for (int k = 0; k < 6; ++k) {
    FreezeMask mask = FreezeMask::all_active(blocks);
    const auto frozen = static_cast<int>(random() % static_cast<std::uint64_t>(blocks));
    for (int block = 0; block < frozen; ++block) mask.set_active(BlockId{block}, false);
    const auto steps = static_cast<Step>(1 + random() % 40);
    drawn.segments.push_back({step, steps, mask});
    step += steps;
  }
  drawn.options.search = drawn.question.options;
  drawn.options.search.overlap = std::nullopt;
  drawn.options.plans_per_mask = 3;
  drawn.options.overhead.start = Duration{static_cast<std::int64_t>(random() % 3 * 100'000)};
  return drawn;
}

std::optional<PlannedTrajectory> try_to_plan(const LazyCase& drawn) {
  try {
    return plan_trajectory({drawn.question.profile, drawn.question.cluster}, drawn.segments,
                           drawn.options);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

std::vector<FreezeMask> masks_of(const LazyCase& drawn) {
  std::vector<FreezeMask> masks;
  for (const ForecastSegment& segment : drawn.segments) masks.push_back(segment.mask);
  return masks;
}

TrajectoryCosts list_all_costs(const LazyCase& drawn, const std::vector<Plan>& plans) {
  const auto& [profile, cluster, options] = drawn.question;
  const std::vector<FreezeMask> masks = masks_of(drawn);
  StepTimes steps(plans, masks, {profile, cluster}, drawn.options.search);
  TrajectoryCosts costs;
  for (std::size_t k = 0; k < masks.size(); ++k) {
    costs.hold.emplace_back();
    costs.change.emplace_back(plans.size(), std::vector<Duration>(plans.size()));
    for (std::size_t from = 0; from < plans.size(); ++from) {
      const Duration step = steps.exact(k, from);
      costs.hold[k].push_back(step >= kFarAway ? kFarAway : step * drawn.segments[k].steps);
      for (std::size_t to = 0; k > 0 && to < plans.size(); ++to) {
        costs.change[k][from][to] =
            price_transition(plans[from], plans[to], {profile, cluster},
                             find_activity(profile, masks[k - 1]), drawn.options.overhead)
                .total;
      }
    }
  }
  return costs;
}

TEST(LazyTrajectory, IsTheOneThatSimulatingEverythingFinds) {
  int walks = 0;
  int transitions = 0;
  for (int seed = 1; seed <= draws(250); ++seed) {
    SCOPED_TRACE(seed);
    const LazyCase drawn = draw_lazy_case(static_cast<std::uint64_t>(seed));
    const auto planned = try_to_plan(drawn);
    if (!planned) continue;
    ++walks;
    transitions += static_cast<int>(planned->transitions.size());
    const TrajectoryCosts costs = list_all_costs(drawn, planned->candidates);
    EXPECT_EQ(planned->best, *find_trajectory(costs));
    EXPECT_EQ(planned->held, hold_one(costs));
    EXPECT_EQ(planned->greedy, follow_greedily(costs));
  }
  EXPECT_GT(walks, draws(150));
  EXPECT_GT(transitions, draws(50));
}

TEST(LazyTrajectory, NoBoundIsAboveWhatItBounds) {
  int bounded = 0;
  int left_out = 0;
  for (std::uint64_t seed = 1001; seed <= 1200; ++seed) {
    SCOPED_TRACE(seed);
    const LazyCase drawn = draw_lazy_case(seed);
    const auto planned = try_to_plan(drawn);
    if (!planned) continue;
    const auto& [profile, cluster, options] = drawn.question;
    const std::vector<Plan>& plans = planned->candidates;
    const std::vector<FreezeMask> masks = masks_of(drawn);
    StepTimes steps(plans, masks, {profile, cluster}, drawn.options.search);
    const Transitions transitions(plans, {profile, cluster});
    for (std::size_t k = 0; k < masks.size(); ++k) {
      const auto prices = transitions.price(find_activity(profile, masks[k]));
      for (std::size_t from = 0; from < plans.size(); ++from) {
        const Duration known = steps.known(k, from);
        bounded += known > Duration{0} ? 1 : 0;
        left_out += known >= kFarAway ? 1 : 0;
        Plan plan = plans[from];
        plan.mask = masks[k];
        const Candidate whole = judge_plan(plan, {profile, cluster}, drawn.options.search.clip);
        EXPECT_LE(known, whole.infeasible ? kFarAway : whole.makespan) << summarize(plan);
        for (std::size_t to = 0; to < plans.size(); ++to) {
          EXPECT_LE(transitions.at_least(from, to, prices, drawn.options.overhead),
                    transitions.predict(from, to, prices, drawn.options.overhead).total);
        }
      }
    }
  }
  EXPECT_GT(bounded, 500);
  EXPECT_GT(left_out, 5);
}

// The bounds are on a step that reads a cache, of one depth and of any depth that is no deeper.
TEST(LazyTrajectory, NoBoundWithACacheIsAboveWhatItBounds) {
  int bounded = 0;
  int exact = 0;
  int left_out = 0;
  for (int seed = 2101; seed <= 2100 + draws(200); ++seed) {
    SCOPED_TRACE(seed);
    const LazyCase drawn = draw_lazy_case(static_cast<std::uint64_t>(seed));
    const auto planned = try_to_plan(drawn);
    if (!planned) continue;
    const auto& [profile, cluster, options] = drawn.question;
    const std::vector<Plan>& plans = planned->candidates;
    const std::vector<FreezeMask> masks = masks_of(drawn);
    StepTimes steps(plans, masks, {profile, cluster}, drawn.options.search);
    for (std::size_t k = 0; k < masks.size(); ++k) {
      for (std::size_t plan = 0; plan < plans.size(); ++plan) {
        Duration shallower = kFarAway;  // least step up to this depth
        for (int depth = 1; steps.may_cache(k, plan, depth); ++depth) {
          const Duration known = steps.known(k, plan, depth);
          const Duration least = steps.least(k, plan, depth);
          const Duration simulated = steps.exact(k, plan, depth);
          shallower = std::min(shallower, simulated);
          EXPECT_LE(known, simulated) << summarize(plans[plan]);
          EXPECT_LE(least, shallower) << summarize(plans[plan]);
          bounded += known > Duration{0} ? 1 : 0;
          exact += known == simulated && known < kFarAway ? 1 : 0;
          left_out += known >= kFarAway ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(bounded, draws(500));
  EXPECT_GT(exact, draws(100));
  EXPECT_GT(left_out, draws(5));
}

}  // namespace
}  // namespace frazil
