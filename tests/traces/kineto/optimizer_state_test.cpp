#include "traces/kineto/optimizer_state.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

TEST(OptimizerState, IsAsManyTensorsAsTheOptimizerKeeps) {
  EXPECT_EQ(state_tensors("adamw"), 2);
  EXPECT_EQ(state_tensors("AdamW"), 2);
  EXPECT_EQ(state_tensors("sgd-momentum"), 1);
  EXPECT_EQ(state_tensors("SGD"), 0);
  EXPECT_EQ(state_tensors("Shampoo"), std::nullopt);
}

TEST(OptimizerState, IsNamedByTheRangeOfAStep) {
  EXPECT_EQ(optimizer_of_range("Optimizer.step#AdamW.step"), "AdamW");
}

TEST(OptimizerState, IsTheUsersBeforeTheTraces) {
  EXPECT_EQ(find_optimizer_state("sgd-momentum", {"AdamW"}).tensors, 1);
  EXPECT_EQ(find_optimizer_state("sgd", {}).doubt, std::nullopt);
}

TEST(OptimizerState, OfATraceIsInDoubt) {
  const OptimizerState adam = find_optimizer_state(std::nullopt, {"AdamW"});
  EXPECT_EQ(adam.tensors, 2);
  EXPECT_EQ(adam.doubt, DoubtKind::kByRule);
  EXPECT_EQ(find_optimizer_state(std::nullopt, {"SGD"}).doubt, DoubtKind::kLowerBound);
  EXPECT_EQ(find_optimizer_state(std::nullopt, {"Muon"}).doubt, DoubtKind::kDefault);
  EXPECT_EQ(find_optimizer_state(std::nullopt, {"AdamW", "SGD"}).tensors, 0);
  EXPECT_EQ(find_optimizer_state(std::nullopt, {}).doubt, DoubtKind::kDefault);
}

}  // namespace
}  // namespace frazil
