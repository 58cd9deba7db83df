#include <gtest/gtest.h>

#include "planner/actions/schedule.h"
#include "planner/plan/activity.h"
#include "planner/plan/gradient_waits.h"
#include "planner/schedules/make_schedule.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

// A stage of one layer on each of two devices, with I and W apart.
Plan two_split_stages() {
  Plan plan;
  plan.batch_size = 1;
  plan.mask = FreezeMask::parse("11", "test", 1);
  plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{0}})};
  plan.schedule =
      ExplicitSchedule{parse_schedule("d0: 0F0 0I0 0W0\nd1: 1F0 1I0 1W0\n", "text").devices};
  return plan;
}

std::string complete(const Plan& plan) {
  const ModelProfile profile = make_chain(2, milliseconds{1}, milliseconds{1}, milliseconds{1});
  return to_text(
      complete_schedule(make_schedule(plan, 2), plan, profile, find_activity(profile, plan.mask)));
}

TEST(ScheduleWaits, LeaveAnIWithoutWorkOutWhereNobodyAsks) {
  EXPECT_EQ(complete(two_split_stages()),
            "d0: 0F0 0SEND_F0 0RECV_B0 0W0 0U\n"
            "d1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0 1U\n");
}

TEST(ScheduleWaits, ReceiveTheGradientBeforeTheIOfAFirstStage) {
  Plan plan = two_split_stages();
  set_gradient_waits(plan);
  EXPECT_EQ(complete(plan),
            "d0: 0F0 0SEND_F0 0RECV_B0 0I0 0W0 0U\n"
            "d1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0 1U\n");
}

}  // namespace
}  // namespace frazil
