// The encoder has three inputs, and boundaries of two tensors of which one carries a gradient.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

TEST(Encoder, OnOneDeviceHasTheBitsOfAPlainProgram) { expect_plain_bits(encoder_model()); }

// A frozen block drops nothing.
TEST(Encoder, UnderMasksHasTheBitsOfAPlainProgramWithFrozenBlocksInEvaluation) {
  for (const std::string mask : {"0111", "0011", "1011", "1101", "0101", "1001", "0001"}) {
    expect_plain_bits(encoder_model(), mask);
  }
}

TEST(Encoder, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(encoder_model(), clipped_adamw()), 43);
}

std::vector<Tensors> train_once(const TestModel& model, const std::vector<Samples>& micro_batches) {
  Run run(model.spec, momentum_sgd(), 7, 3);
  run.transition_to(make_plan(model, {.devices = 3, .cuts = {2, 4}}));
  run.step(0, 0.1, micro_batches);
  std::vector<Tensors> weights;
  for (const DeviceState& state : run.pool().states()) {
    for (const auto& [layer, own] : state) weights.push_back(own.parameters);
  }
  return weights;
}

bool same_bits(const std::vector<Tensors>& a, const std::vector<Tensors>& b) {
  for (std::size_t l = 0; l < a.size(); ++l) {
    for (std::size_t p = 0; p < a[l].size(); ++p) {
      if (!at::equal(a[l][p], b[l][p])) return false;
    }
  }
  return a.size() == b.size();
}

// The mask arrives in every stage: what it hides changes nothing, what it shows does.
TEST(Encoder, LearnsNothingFromMaskedTokens) {
  const TestModel model = encoder_model();
  const std::vector<Samples> micro_batches = model.samples({.seed = 1});
  const std::vector<Tensors> expected = train_once(model, micro_batches);
  for (const bool is_masked : {true, false}) {
    std::vector<Samples> changed = micro_batches;
    int tokens = 0;
    for (Samples& samples : changed) {
      const at::Tensor mask = samples.inputs[2].to(at::kBool);
      const at::Tensor where = is_masked ? mask.logical_not() : mask;
      samples.inputs[0] = at::where(where, 19 - samples.inputs[0], samples.inputs[0]);
      tokens += where.sum().item<int>();
    }
    EXPECT_GT(tokens, 5);
    EXPECT_EQ(same_bits(train_once(model, changed), expected), is_masked);
  }
}

}  // namespace
}  // namespace frazil
