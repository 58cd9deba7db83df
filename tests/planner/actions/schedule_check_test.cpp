#include "planner/actions/schedule_check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>

#include "profiles/error.h"
#include "tests/planner/support/parse_schedule.h"
#include "tests/planner/support/shared_plans.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

Activity activity_of(int layers, const FreezeMask& mask) {
  using std::chrono::milliseconds;
  return find_activity(make_chain(layers, milliseconds{1}, milliseconds{1}, milliseconds{1}), mask);
}

// Checks a schedule of two stages of two layers on two devices, with two micro-batches.
std::string check(const std::string& text, const std::string& mask = "1111",
                  const std::function<void(Plan&)>& change = {}) {
  Plan plan;
  plan.batch_size = 2;
  plan.mask = FreezeMask::parse(mask, "test", 1);
  plan.pipelines = {make_pipeline(4, {LayerId{2}}, {DeviceId{0}, DeviceId{1}}, interval(0, 1))};
  if (change) change(plan);
  try {
    validate_schedule(parse_schedule(text, "text"), plan, activity_of(4, plan.mask), "schedule");
  } catch (const InputError& error) {
    return error.what();
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "valid";
}

TEST(ScheduleCheck, CheckNamesWhatIsWrong) {
  const std::string first = "d0: 0F0-1 0B0-1\n";
  EXPECT_EQ(check(first + "d1: 1F0 1B0 1F1 1I1 1W1\n"), "valid");
  EXPECT_EQ(check(first + "d1: 1F0 (1F1;1B0)OVERLAP_F_B 1B1\n"), "valid");
  EXPECT_EQ(check(first + "d1: 1F0 1B0 1F1 1W1 1I1\n"),
            "schedule: found 1W1 on device 1, expected F before every backward of micro-batch 1, "
            "and I before W");
  EXPECT_EQ(check(first + "d1: 1F0 1B0 1B1 1F1\n"),
            "schedule: found 1B1 on device 1, expected F before every backward of micro-batch 1, "
            "and I before W");
  EXPECT_EQ(check(first + "d1: 1F0 1B0 1F1 1I1 1B1\n"),
            "schedule: found 1B1 on device 1 once more, expected one F and one backward of "
            "micro-batch 1");
  EXPECT_EQ(
      check(first + "d1: 1F0 1B0 1F1\n"),
      "schedule: found no 1B1 on any device, expected every owned micro-batch in every stage");
  EXPECT_EQ(
      check(first + "d1: 1F0 1B0 1F1 1I1\n"),
      "schedule: found no 1W1 on any device, expected every owned micro-batch in every stage");
  EXPECT_EQ(check(first + "d1: 1F2\n"),
            "schedule: found 1F2 on device 1, expected micro-batches that its pipeline owns");
  EXPECT_EQ(check(first + "d1: 2F0\n"),
            "schedule: found 2F0 on device 1, expected one of 2 stages");
  EXPECT_EQ(check(first + "d1: 1:1F0\n"),
            "schedule: found 1:1F0 on device 1, expected one of 1 pipelines");
  EXPECT_EQ(
      check(first + "d1: 0F0\n"),
      "schedule: found 0F0 on device 1, expected an action of a stage that lies on this device");
  EXPECT_EQ(check(first + "d1: 1U\n"),
            "schedule: found 1U on device 1, expected F, I, W, B, R or a pair of them");
  EXPECT_EQ(check(first + "d1: 1F0.0\n"),
            "schedule: found 1F0.0 on device 1, expected whole micro-batches of a stage that does "
            "not share them by samples");
}

TEST(ScheduleCheck, APairHoldsNoForwardWithItsOwnBackward) {
  EXPECT_EQ(check("d0: 0F0-1 0B0-1\nd1: (1F0;1B0)OVERLAP_F_B 1F1 1B1\n"),
            "schedule: found (1F0;1B0)OVERLAP_F_B on device 1, expected a backward of another "
            "micro-batch than the forward beside it");
}

TEST(ScheduleCheck, AStageRecomputesBeforeItsBackwardIffItKeepsNothing) {
  const auto recompute = [](Plan& plan) {
    plan.pipelines[0].stages[1].memory = MemoryPolicy::kRecompute;
  };
  const std::string first = "d0: 0F0-1 0B0-1\n";
  EXPECT_EQ(check(first + "d1: 1F0 1F1 1R0 1B0 1R1 1I1 1W1\n", "1111", recompute), "valid");
  EXPECT_EQ(check(first + "d1: 1F0 1F1 1B0 1R1 1B1\n", "1111", recompute),
            "schedule: found 1B0 on device 1, expected the R of micro-batch 0 before it");
  // A stage without an I begins its backward with W, so R has to stand before W.
  EXPECT_EQ(
      check("d0: 0F0 0W0 0F1 0R1 0W1\nd1: 1F0 1B0 1F1 1B1\n", "0111",
            [](Plan& plan) { plan.pipelines[0].stages[0].memory = MemoryPolicy::kRecompute; }),
      "schedule: found 0W0 on device 0, expected the R of micro-batch 0 before it");
  EXPECT_EQ(check(first + "d1: 1F0 1R0 1B0 1F1 1B1\n"),
            "schedule: found 1R0 on device 1, expected an R only in a stage that recomputes");
}

TEST(ScheduleCheck, UpdatesStandAmongBackwardsOnlyWhereWeightsHaveVersions) {
  const std::string text = "d0: 0F0-1 0B0-1\nd1: 1F0 1B0 1U 1F1 1B1 1U\n";
  EXPECT_EQ(check(text, "1111", [](Plan& plan) { plan.versions = WeightVersions::kStash; }),
            "valid");
  EXPECT_EQ(check(text),
            "schedule: found 1U on device 1, expected F, I, W, B, R or a pair of them");
}

TEST(ScheduleCheck, CheckAsksNoBackwardOfFrozenStages) {
  EXPECT_EQ(check("d0: 0F0 0F1\nd1: 1F0 1B0 1F1 1B1\n", "0011"), "valid");
  EXPECT_EQ(check("d0: 0F0 0F1 0B0 0B1\nd1: 1F0 1B0 1F1 1B1\n", "0011"), "valid");
  // A stage whose only active layer comes first has a W and no I.
  EXPECT_EQ(check("d0: 0F0 0F1 0W0 0W1\nd1: 1F0 1B0 1F1 1B1\n", "0111"), "valid");
}

TEST(ScheduleCheck, TheDevicesOfAStageTakeItsMicroBatchesInTurn) {
  Plan plan;
  plan.batch_size = 2;
  plan.mask = FreezeMask::all_active(2);
  plan.pipelines = {make_pipeline(2, {}, {DeviceId{0}}, interval(0, 1))};
  plan.pipelines[0].stages[0].devices.push_back(DeviceId{1});
  const Activity activity = activity_of(2, plan.mask);
  EXPECT_NO_THROW(validate_schedule(parse_schedule("d0: 0F0 0B0\nd1: 0F1 0B1\n", "text"), plan,
                                    activity, "schedule"));
  const auto refusal = [&](const std::string& lists) {
    try {
      validate_schedule(parse_schedule(lists, "text"), plan, activity, "schedule");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("valid");
  };
  EXPECT_EQ(
      refusal("d0: 0F0 0F1 0B0\nd1: 0B1\n"),
      "schedule: found 0F1 on device 0, expected micro-batch 1 on device 1, whose turn it is");
  EXPECT_EQ(
      refusal("d0: 0F1 0B1\nd1: 0F0 0B0\n"),
      "schedule: found 0F1 on device 0, expected micro-batch 1 on device 1, whose turn it is");
}

}  // namespace
}  // namespace frazil
