#include "planner/what_if/what_if.h"

#include <gtest/gtest.h>

#include "planner/actions/validate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

WhatIf make_question(int stages, int micro_batches, Duration hop = {},
                     ScheduleKind kind = ScheduleKind::kOneForwardOneBackward) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = kind;
  what_if.forward = {milliseconds(1)};
  what_if.backward_input = {milliseconds(1)};
  what_if.backward_weight = {milliseconds(1)};
  what_if.hop = hop;
  return what_if;
}

std::string refusal(const WhatIf& what_if) {
  try {
    make_what_if(what_if);
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(WhatIf, AnswersTheKnownTimesOfOneForwardOneBackwardWithAHop) {
  const auto makespan = [](int stages, int micro_batches) {
    return answer_what_if(make_what_if(make_question(stages, micro_batches, microseconds(313))))
        .makespan;
  };
  EXPECT_EQ(makespan(4, 8), microseconds(38'008));
  EXPECT_EQ(makespan(8, 64), microseconds(251'812));
  EXPECT_EQ(makespan(16, 256), microseconds(972'004));
  EXPECT_EQ(makespan(32, 1024), microseconds(3'804'772));
}

TEST(WhatIf, FiguresAreThoseOfTheTimeLine) {
  const WhatIfInputs inputs = make_what_if(make_question(3, 7, microseconds(100)));
  const WhatIfAnswer answer = answer_what_if(inputs);
  const PlanSimulation simulation = simulate_plan(inputs.plan, {inputs.profile, inputs.cluster});
  EXPECT_EQ(answer.makespan, simulation.makespan);
  EXPECT_EQ(answer.makespan, makespan(simulation.timeline));
  EXPECT_EQ(answer.span, max_span(simulation.timeline));
  EXPECT_DOUBLE_EQ(answer.bubble, bubble(simulation.timeline));
  EXPECT_DOUBLE_EQ(answer.bubble_span, bubble_of_span(simulation.timeline));
}

TEST(WhatIf, CountsMicroBatchesInFlight) {
  EXPECT_EQ(answer_what_if(make_what_if(make_question(4, 8))).peak_chunks,
            (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(answer_what_if(make_what_if(make_question(4, 2))).peak_chunks,
            (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(answer_what_if(make_what_if(make_question(3, 5, {}, ScheduleKind::kGpipe))).peak_chunks,
            (std::vector<int>{5, 5, 5}));
  WhatIf deeper = make_question(4, 8);
  deeper.in_flight = 7;
  EXPECT_EQ(answer_what_if(make_what_if(deeper)).peak_chunks, (std::vector<int>{7, 5, 3, 1}));
}

TEST(WhatIf, TakesOneTimeOrOnePerDevice) {
  WhatIf what_if = make_question(2, 1);
  what_if.forward = {milliseconds(1), milliseconds(5)};
  EXPECT_EQ(answer_what_if(make_what_if(what_if)).makespan, milliseconds(10));
  what_if.forward = {milliseconds(1), milliseconds(5), milliseconds(2)};
  EXPECT_EQ(refusal(what_if),
            "command line: found 3 times for --forward, expected one, or one for each of 2 "
            "devices");
}

TEST(WhatIf, RefusesWhatCannotBeAsked) {
  EXPECT_NE(refusal(make_question(0, 1)).find("0 stages"), std::string::npos);
  EXPECT_NE(refusal(make_question(5000, 1)).find("5000 stages"), std::string::npos);
  EXPECT_NE(refusal(make_question(1, 0)).find("0 micro-batches"), std::string::npos);
  EXPECT_NE(refusal(make_question(4096, 1'000'000)).find("actions"), std::string::npos);
  WhatIf chunks = make_question(2, 2);
  chunks.chunks = 2;
  EXPECT_NE(refusal(chunks).find("--chunks 2 with schedule 1f1b"), std::string::npos);
  WhatIf in_flight = make_question(2, 2, {}, ScheduleKind::kGpipe);
  in_flight.in_flight = 2;
  EXPECT_NE(refusal(in_flight).find("--in-flight 2 with schedule gpipe"), std::string::npos);
  WhatIf nothing = make_question(2, 2);
  nothing.forward = nothing.backward_input = nothing.backward_weight = {Duration{0}};
  EXPECT_NE(refusal(nothing).find("all zero"), std::string::npos);
  WhatIf huge = make_question(2, 1000);
  huge.forward = {Duration::max()};
  EXPECT_NE(refusal(huge).find("2^62"), std::string::npos);
}

TEST(WhatIf, InputsAreValid) {
  const WhatIfInputs inputs = make_what_if(make_question(3, 4, microseconds(1)));
  EXPECT_NO_THROW(validate(inputs.profile, "profile"));
  EXPECT_NO_THROW(validate(inputs.cluster, "cluster"));
  EXPECT_NO_THROW(validate(inputs.plan, {inputs.profile, inputs.cluster}, "plan"));
}

}  // namespace
}  // namespace frazil
