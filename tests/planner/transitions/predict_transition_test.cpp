// Tests the gate's question, put to the planner: its answer is what a trajectory over the same two
// masks is charged, and an authority that asks waits exactly as long as the answer says.

#include "planner/transitions/predict_transition.h"

#include <gtest/gtest.h>

#include "planner/freezing/freeze_authority.h"
#include "planner/search/search.h"
#include "planner/trajectory/plan_trajectory.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kBlocks = 8;

const ModelProfile& eight_layers() {
  static const ModelProfile profile =
      make_chain(kBlocks, microseconds{100}, microseconds{100}, microseconds{100});
  return profile;
}

// Makes devices of which none has room for the whole model until most of it is frozen.
const Cluster& small_cluster() {
  static const Cluster cluster =
      make_uniform_cluster(4, Bytes{30'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  return cluster;
}

TrajectoryOptions make_options() {
  TrajectoryOptions options;
  options.search.batch_size = 8;
  options.search.micro_batch_sizes = {1};
  options.plans_per_mask = 1;
  options.overhead = {milliseconds{3}, milliseconds{20}};
  return options;
}

const FreezeMask kActive = FreezeMask::all_active(kBlocks);
const FreezeMask kFrozen = FreezeMask::frozen_prefix(kBlocks, BlockId{5});

PlannedTrajectory plan_both() {
  return plan_trajectory({eight_layers(), small_cluster()},
                         {{0, 100, kActive}, {100, 100, kFrozen}}, make_options());
}

// Returns the best plan under the wanted mask.
Plan plan_frozen() {
  SearchOptions search = make_options().search;
  search.mask = kFrozen;
  const Ranking ranking = search_plans({eight_layers(), small_cluster()}, search);
  return ranking.best()->plan;
}

PredictedTransition predict_from(const Plan& held) {
  return predict_transition(held, plan_frozen(), {eight_layers(), small_cluster()}, {},
                            make_options().overhead);
}

TEST(PredictTransition, AgreesWithATrajectoryThatIsFollowedGreedily) {
  const PlannedTrajectory planned = plan_both();
  ASSERT_TRUE(planned.greedy.has_value());
  const std::size_t from = planned.greedy->states[0];
  const std::size_t to = planned.greedy->states[1];
  ASSERT_NE(from, to) << "another mask, another plan";
  Plan held = planned.candidates[from];
  held.mask = kActive;
  const PredictedTransition predicted = predict_from(held);
  EXPECT_EQ(predicted.saved_per_step, planned.step_times[0][from] - planned.step_times[1][to]);
  EXPECT_GT(predicted.saved_per_step, Duration{0});
  const Duration holding = 100 * (planned.step_times[0][from] + planned.step_times[1][to]);
  EXPECT_EQ(predicted.cost, planned.greedy->total - holding);
  EXPECT_GT(predicted.cost, milliseconds{23});
}

TEST(PredictTransition, LetsAnAuthorityFreezeOnlyWhileEnoughStepsAreLeft) {
  const PlannedTrajectory planned = plan_both();
  Plan held = planned.candidates[planned.greedy->states[0]];
  held.mask = kActive;
  const PredictedTransition predicted = predict_from(held);
  const Step enough = (predicted.cost.count() + predicted.saved_per_step.count() - 1) /
                      predicted.saved_per_step.count();
  ASSERT_GT(enough, 1);
  for (const Step left : {enough, enough - 1}) {
    const FreezeConfig config{TraceFreeze{.steps = left + 1, .masks = {TracedMask{1, kFrozen}}},
                              {.amortisation = AmortisationGate{}}};
    FreezeAuthority authority(config, {.blocks = kBlocks, .steps = left + 1},
                              [&](const FreezeMask& from, const FreezeMask& to, Step) {
                                EXPECT_EQ(from, kActive);
                                EXPECT_EQ(to, kFrozen);
                                return predict_from(held);
                              });
    authority.decide({.step = 0});
    const Decision decision = authority.decide({.step = 1});
    EXPECT_EQ(decision.mask, left == enough ? kFrozen : kActive);
    EXPECT_EQ(decision.by, left == enough ? "trace" : "amortisation") << decision.reason;
  }
}

// A step on one device is a sum: filling takes the prefix's F of every micro-batch, from where the
// depth before ends.
TEST(PredictFill, IsThePrefixFromTheOldBoundaryOn) {
  ModelProfile profile = eight_layers();
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    for (CostSample& cost : profile.layers[l].costs) {
      cost.forward_frozen = microseconds{10 * (static_cast<int>(l) + 1)};
    }
  }
  const Cluster one = make_uniform_cluster(1, Bytes{1 << 30}, {});
  SearchOptions search = make_options().search;
  const auto plan_of = [&](int frozen, bool caches) {
    search.mask = frozen == 0 ? kActive : FreezeMask::frozen_prefix(kBlocks, BlockId{frozen - 1});
    Plan plan = search_plans({profile, one}, search).best()->plan;
    plan.cache_frozen_prefix = caches;
    return plan;
  };
  const auto fill = [&](const Plan& held, const Plan& next) {
    return predict_fill(held, next, {profile, one});
  };
  EXPECT_EQ(fill(plan_of(0, false), plan_of(3, false)), Duration{0});
  EXPECT_EQ(fill(plan_of(0, false), plan_of(3, true)), microseconds{8 * (10 + 20 + 30)});
  EXPECT_EQ(fill(plan_of(1, true), plan_of(3, true)), microseconds{8 * (20 + 30)});
  EXPECT_EQ(fill(plan_of(1, false), plan_of(3, true)), microseconds{8 * (10 + 20 + 30)});
  EXPECT_EQ(fill(plan_of(3, true), plan_of(3, true)), Duration{0});
  EXPECT_EQ(fill(plan_of(5, true), plan_of(3, true)), Duration{0});
}

TEST(PredictTransition, OfAPlanThatStaysIsThatOfTheMaskAlone) {
  Plan held = plan_both().candidates[0];
  held.mask = kActive;
  Plan next = held;
  next.mask = kFrozen;
  const PredictedTransition predicted =
      predict_transition(held, next, {eight_layers(), small_cluster()});
  EXPECT_EQ(predicted.cost, Duration{0});
  EXPECT_EQ(predicted.saved_per_step,
            simulate_plan(held, {eight_layers(), small_cluster()}).makespan -
                simulate_plan(next, {eight_layers(), small_cluster()}).makespan);
  EXPECT_GT(predicted.saved_per_step, Duration{0});
}

}  // namespace
}  // namespace frazil
