#include "planner/reproduce/launches.h"

#include <gtest/gtest.h>

#include "planner/plan/activity.h"
#include "planner/schedules/make_schedule.h"
#include "sim/simulate.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

// Simulates two stages of a layer each, F 1 ns and B 2 ns, over three micro-batches.
Duration simulate_launched(Duration of_layer) {
  const ModelProfile profile = make_chain(2, nanoseconds(1), nanoseconds(1), nanoseconds(1));
  const Cluster cluster = make_uniform_cluster(2, Bytes{1 << 20}, {});
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = 3;
  plan.mask = FreezeMask::all_active(2);
  plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{2}})};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  const Activity activity = find_activity(profile, plan.mask);
  LoweredStep step = lower(plan, complete_schedule(make_schedule(plan, 2), plan, profile, activity),
                           {profile, cluster}, activity);
  add_launches(step, plan, of_layer);
  return simulate(step.graph, {profile, cluster}, step.actions).makespan;
}

// The first layer has no input gradient, so its B is 1 ns.
TEST(Launches, WithoutTimeChangeNothing) {
  // Stage 1 runs F from 1 to 4 and three B of 2 to 10; the last B of stage 0 follows.
  EXPECT_EQ(simulate_launched(Duration{0}), nanoseconds(11));
}

// The clocks are 0F0 | 0F1 1F0 | 0F2 1F1 | 1F2. The last F waits for the five launches before its
// own. Nothing waits for its own launch, which ends one launch later.
TEST(Launches, FollowOneAnotherInTheOrderOfTheClock) {
  EXPECT_EQ(simulate_launched(nanoseconds(2)), nanoseconds(2 * 5 + 1 + 3 * 2 + 1));
}

}  // namespace
}  // namespace frazil
