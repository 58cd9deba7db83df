#include "planner/plan/step_window.h"

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Plan make_ahead(int steps) {
  Plan plan;
  plan.model_hash = "some model";
  plan.batch_size = 2;
  plan.mask = FreezeMask::all_active(1);
  plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{1}})};
  plan.schedule = NamedSchedule{};
  plan.steps_ahead = steps;
  return plan;
}

std::string with_steps_ahead(const std::string& value) {
  std::string text = to_json(make_ahead(3));
  const std::string own = "\"steps_ahead\": 3";
  return text.replace(text.find(own), own.size(), "\"steps_ahead\": " + value);
}

TEST(StepWindow, IsInTheFileOfThePlanIfDevicesMayGoAhead) {
  for (const int steps : {1, 7, kMostStepsAhead}) {
    const Plan plan = make_ahead(steps);
    EXPECT_EQ(parse_plan(to_json(plan), "plan.json"), plan);
  }
  const std::string plain = to_json(make_ahead(0));
  EXPECT_EQ(plain.find("steps_ahead"), std::string::npos);
  EXPECT_EQ(parse_plan(plain, "plan.json"), make_ahead(0));
  EXPECT_EQ(parse_plan(with_steps_ahead("0"), "plan.json"), make_ahead(0));
}

TEST(StepWindow, OfNoSensibleLengthIsRefusedInOneSentence) {
  for (const std::string value : {"-1", "256", "1.5", "\"many\"", "null"}) {
    try {
      (void)parse_plan(with_steps_ahead(value), "plan.json");
      ADD_FAILURE() << value << " was taken";
    } catch (const InputError& error) {
      EXPECT_NE(error.found().find("$.steps_ahead"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(StepWindow, IsToldInTheSummary) {
  const std::string plain = summarize(make_ahead(0));
  EXPECT_EQ(summarize(make_ahead(1)), plain + ", devices up to 1 step ahead");
  EXPECT_EQ(summarize(make_ahead(7)), plain + ", devices up to 7 steps ahead");
}

TEST(StepWindow, IsOneStepWhereDevicesMeetInEveryStep) {
  const Plan plan = make_ahead(3);
  EXPECT_EQ(steps_of_window(plan, {}), 4);
  EXPECT_EQ(explain_in_step(plan, {}), std::nullopt);
  for (const StepMeetings meetings :
       {StepMeetings{.clips = true}, StepMeetings{.commits = true}, StepMeetings{.caches = true}}) {
    EXPECT_EQ(steps_of_window(plan, meetings), 1);
    EXPECT_TRUE(explain_in_step(plan, meetings).has_value());
    EXPECT_EQ(explain_in_step(make_ahead(0), meetings), std::nullopt);
  }
  EXPECT_EQ(explain_in_step(plan, {.commits = true}),
            "over processes every step is committed, so no device goes ahead");
  EXPECT_EQ(in_step(plan), make_ahead(0));
}

}  // namespace
}  // namespace frazil
