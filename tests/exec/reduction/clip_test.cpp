// Clipping by the norm over the whole model is compared with PyTorch's rule, by hand in double.

#include "exec/reduction/clip.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "exec/communication/in_process_communicator.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr std::uint64_t kSeed = 7;

// Returns minus the change of every parameter in one step of plain descent at rate 1: the gradients
// used.
Tensors gradients_of(const PlanShape& shape, double clip_norm) {
  const ModelSpec model = make_vit(small_config());
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.momentum = 0;
  optimizer.weight_decay = 0;
  optimizer.clip_norm = clip_norm;
  Run run(model, optimizer, kSeed, devices_of(shape));
  run.transition_to(make_small_plan(run.structure(), shape));
  run.step(0, 1.0, small_micro_batches(0, shape.micro_batches));
  const std::vector<const LayerState*> states = first_holders(run.pool().states(), kSmallLayers);
  Tensors gradients;
  for (std::size_t l = 0; l < states.size(); ++l) {
    const Tensors before = initial_parameters(model, LayerId{l}, kSeed);
    for (std::size_t p = 0; p < before.size(); ++p) {
      gradients.push_back(before[p] - states[l]->parameters[p].detach());
    }
  }
  return gradients;
}

double norm_of(const Tensors& gradients) {
  double squares = 0;
  for (const at::Tensor& gradient : gradients) {
    squares += gradient.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

double torch_scale(double norm, double clip_norm) {
  return std::min(1.0, clip_norm / (norm + 1e-6));
}

void expect_scaled(const Tensors& clipped, const Tensors& whole, double scale) {
  ASSERT_EQ(clipped.size(), whole.size());
  for (std::size_t p = 0; p < whole.size(); ++p) {
    // Weights are about 1 and fp32, so their change is known to 1e-7.
    EXPECT_TRUE(at::allclose(clipped[p], whole[p] * scale, 1e-5, 3e-7)) << "parameter " << p;
  }
}

TEST(Clip, ScalesByTheNormOfTheWholeModel) {
  const PlanShape one{};
  const Tensors whole = gradients_of(one, 0);
  const double norm = norm_of(whole);
  ASSERT_GT(norm, 0.5);
  const double clip_norm = norm / 4;
  const double scale = torch_scale(norm, clip_norm);
  expect_scaled(gradients_of(one, clip_norm), whole, scale);
  expect_scaled(gradients_of({.cuts = {{3}}}, clip_norm), whole, scale);
  expect_scaled(gradients_of({.cuts = {{3}, {5}}, .owned = {4, 2}}, clip_norm), whole, scale);
}

TEST(Clip, LeavesASmallNormAlone) {
  const Tensors whole = gradients_of({}, 0);
  expect_scaled(gradients_of({}, 2 * norm_of(whole)), whole, 1);
}

TEST(Clip, LeavesFrozenParametersOutOfTheNorm) {
  const PlanShape frozen{.mask = "00111"};
  const Tensors active = gradients_of(frozen, 0);
  const double clip_norm = norm_of(active) / 4;
  ASSERT_LT(norm_of(active), 0.99 * norm_of(gradients_of({}, 0)));
  expect_scaled(gradients_of(frozen, clip_norm), active, torch_scale(norm_of(active), clip_norm));
}

// The answer is exact, from sums given by hand on one device.
TEST(Clip, GivesTheRuleToTheLastBit) {
  const ModelProfile structure = make_structure(make_vit(small_config()), 2);
  const StepProgram program = make_program(make_small_plan(structure, {}), structure, 1, true);
  const auto communicators = make_in_process_communicators(1);
  const auto scale = [&](const std::map<LayerId, Tensors>& sums, double clip_norm) {
    return find_clip_scale(sums, program, DeviceId{0}, *communicators[0], 0, clip_norm);
  };
  const std::map<LayerId, Tensors> sums{{LayerId{0}, {at::full({9}, 2.0), at::full({1}, 0.0)}},
                                        {LayerId{5}, {at::full({16}, 2.0)}}};
  EXPECT_EQ(scale(sums, 5), 5 / (10 + 1e-6));
  EXPECT_EQ(scale(sums, 10), 10 / (10 + 1e-6));
  EXPECT_EQ(scale(sums, 11), 1.0);
  EXPECT_EQ(scale({}, 1), 1.0);
  EXPECT_THROW(scale(sums, 0), std::logic_error);
}

}  // namespace
}  // namespace frazil
