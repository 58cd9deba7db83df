#include "traces/log_costs.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

using What = decltype(FreezeEvent::what);

FreezeTrace make_log(const std::vector<FreezeEvent>& events) {
  FreezeTrace log;
  log.batch_size = 8;
  log.open = true;
  log.events = events;
  return log;
}

StepEvent step_of(std::int64_t samples, std::int64_t time) {
  return {0.5, samples, Duration{time}};
}

// The log has two epochs of three steps, of which the last is short, and a transition to another
// plan at step 4 with the events that led to it.
TEST(LogCosts, AreOfWholeStepsFromAPlanOrAnEvaluationOnToTheNext) {
  const What plan = PlanEvent{};
  const What switched = TransitionEvent{};
  const What mask = MaskEvent{FreezeMask::all_active(1)};
  const What evaluation = EvalEvent{};
  const FreezeTrace log = make_log({{0, mask},
                                    {0, plan},
                                    {0, switched},
                                    {0, step_of(8, 5)},
                                    {1, step_of(8, 6)},
                                    {2, step_of(3, 7)},
                                    {3, evaluation},
                                    {3, CheckpointEvent{}},
                                    {3, step_of(8, 9)},
                                    {4, mask},
                                    {4, plan},
                                    {4, switched},
                                    {4, step_of(8, 11)},
                                    {5, step_of(3, 12)},
                                    {6, evaluation}});
  EXPECT_EQ(add_costs(log), (std::vector<FreezeEvent>{{0, mask},
                                                      {0, plan},
                                                      {0, switched},
                                                      {0, CostEvent{2, 16, Duration{11}}},
                                                      {0, step_of(8, 5)},
                                                      {1, step_of(8, 6)},
                                                      {2, step_of(3, 7)},
                                                      {3, evaluation},
                                                      {3, CostEvent{1, 8, Duration{9}}},
                                                      {3, CheckpointEvent{}},
                                                      {3, step_of(8, 9)},
                                                      {4, mask},
                                                      {4, plan},
                                                      {4, switched},
                                                      {4, CostEvent{1, 8, Duration{11}}},
                                                      {4, step_of(8, 11)},
                                                      {5, step_of(3, 12)},
                                                      {6, evaluation}}));
}

// Whole are the steps of a plan's own batch: 16 samples, or 12 at an epoch's end, are no step of 8.
TEST(LogCosts, OfABatchThatGrowsAreOfThePlansWholeSteps) {
  const What grown = PlanEvent{.plan = "", .summary = "", .batch_size = 16};
  const FreezeTrace log = make_log({{0, PlanEvent{}},
                                    {0, step_of(8, 5)},
                                    {1, grown},
                                    {1, step_of(16, 7)},
                                    {3, step_of(8, 9)},
                                    {4, EvalEvent{}},
                                    {4, step_of(16, 11)},
                                    {6, step_of(12, 13)},
                                    {8, PlanEvent{}},
                                    {8, step_of(8, 15)}});
  std::vector<FreezeEvent> costs = add_costs(log);
  std::erase_if(costs, [](const FreezeEvent& event) {
    return !std::holds_alternative<CostEvent>(event.what);
  });
  EXPECT_EQ(costs, (std::vector<FreezeEvent>{{0, CostEvent{1, 8, Duration{5}}},
                                             {1, CostEvent{1, 16, Duration{7}}},
                                             {4, CostEvent{1, 16, Duration{11}}},
                                             {8, CostEvent{1, 8, Duration{15}}}}));
}

TEST(LogCosts, OfALogThatEndsInAnEpochCountItsSteps) {
  const FreezeTrace log = make_log({{0, PlanEvent{}}, {0, step_of(8, 5)}, {1, step_of(8, 6)}});
  const std::vector<FreezeEvent> events = add_costs(log);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[1], (FreezeEvent{0, CostEvent{2, 16, Duration{11}}}));
  EXPECT_TRUE(add_costs(make_log({})).empty());
}

}  // namespace
}  // namespace frazil
