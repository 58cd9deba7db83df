#include "analysis/sampled_steps.h"

#include <gtest/gtest.h>

#include "analysis/run_answer.h"
#include "tests/analysis/sample_runs.h"

namespace frazil {
namespace {

Timeline timeline_of(const std::vector<Step>& steps) {
  Timeline timeline;
  for (const Step step : steps) {
    Span span;
    span.action.step = step;
    timeline.spans.push_back(span);
  }
  return timeline;
}

std::string tell(const std::vector<Step>& steps, Step window = 1) {
  return describe(find_sampled(timeline_of(steps), window).value());
}

TEST(SampledStepsOf, APhaseAreToldByTheirDistanceAndThoseOfWindowsByTheirWindows) {
  EXPECT_FALSE(find_sampled(Timeline{}));
  EXPECT_EQ(tell({7}), "one sampled step, 7");
  EXPECT_EQ(tell({3, 11, 19}), "3 sampled steps, one in 8 from step 3 to step 19");
  EXPECT_EQ(tell({3, 4, 5}, 3), "3 sampled steps, in 1 window from step 3 to step 5");
  // The second window follows the first at once.
  const std::vector<Step> steps{3, 4, 5, 6, 24, 25};
  EXPECT_EQ(tell(steps, 2), "6 sampled steps, in 3 windows from step 3 to step 25");
  EXPECT_EQ(find_sampled(timeline_of(steps), 2)->every, 2);
}

TEST(SampledStepsOf, APhaseWithoutAWholeWindowAreMissedByANote) {
  const auto tells = [](const PhaseSummary& phase) { return !tell_uncovered(phase).empty(); };
  PhaseSummary phase;
  phase.first_step = 5;
  phase.steps = 33;
  phase.window = 32;
  EXPECT_TRUE(tells(phase));
  RunSummary run = summarize(sample_run("run"));
  run.phases = {phase};
  EXPECT_NE(to_text(run).find("note: no time lines of the phase from step 5 were measured: after "
                              "its first steps, which are cold, none of its windows of 32 steps"),
            std::string::npos)
      << to_text(run);
  phase.steps = 32;  // a window has no room besides the cold steps
  EXPECT_FALSE(tells(phase));
  phase.steps = 33;
  phase.window = 1;
  EXPECT_FALSE(tells(phase));
  phase.window = 32;
  phase.sampled = find_sampled(timeline_of({10, 11}), 2);
  EXPECT_FALSE(tells(phase));
}

}  // namespace
}  // namespace frazil
