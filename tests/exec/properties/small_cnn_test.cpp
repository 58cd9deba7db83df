// One output has two readers, one far away, and one edge is without a gradient.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

constexpr std::uint64_t kCnnSeed = 11;

// Autograd adds the trunk's two gradients in either order, and two terms have the same sum in both.
TEST(SmallCnn, OnOneDeviceHasTheBitsOfAPlainProgram) { expect_plain_bits(small_cnn_model()); }

TEST(SmallCnn, UnderMasksHasTheBitsOfAPlainProgram) {
  for (const std::string mask : {"011111", "001111", "000111", "110111", "101011", "010001"}) {
    expect_plain_bits(small_cnn_model(), mask);
  }
}

TEST(SmallCnn, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(small_cnn_model(), clipped_adamw()), 45);
}

// The gradient over the skip must reach the trunk: without it the trunk's gradient is another one.
TEST(SmallCnn, AddsTheGradientOfTheSkipToThatOfTheChain) {
  const TestModel model = small_cnn_model();
  TestModel cut = model;
  for (ModelEdge& edge : cut.spec.edges) {
    if (edge.from == LayerId{1} && edge.to == LayerId{4}) edge.kind = EdgeKind::kDetached;
  }
  const std::vector<Samples> micro_batches = model.samples({.seed = 1});
  const LayerTensors start = start_values(model.spec, kCnnSeed);
  const at::Tensor whole =
      differentiate_step(model.spec, start, micro_batches, kCnnSeed, 0).gradients[1].at(0);
  const at::Tensor part =
      differentiate_step(cut.spec, start, micro_batches, kCnnSeed, 0).gradients[1].at(0);
  EXPECT_FALSE(at::allclose(whole, part, 1e-3, 1e-6));
  for (const TestModel& one : {model, cut}) {
    EXPECT_EQ(train_two_steps(one, momentum_sgd(), {.devices = 3, .cuts = {2, 4}}),
              train_two_steps(one, momentum_sgd(), {}));
  }
  EXPECT_NE(train_two_steps(model, momentum_sgd(), {}), train_two_steps(cut, momentum_sgd(), {}));
}

// The pool weighs by the stem's output, but teaches it nothing.
TEST(SmallCnn, SendsNoGradientOverADetachedEdge) {
  const TestModel model = small_cnn_model();
  frazil::Run run(model.spec, momentum_sgd(), kCnnSeed, 2);
  // Stage 0 is the stem, stage 1 all later layers; only pool and classifier train.
  run.transition_to(make_plan(model, {.devices = 2, .cuts = {1}, .mask = "000011"}));
  const StepResult result = run.step(0, 1e-2, model.samples({.seed = 1}), /*record=*/true);
  for (const Span& span : result.spans) {
    EXPECT_NE(span.action.kind, ActionKind::kSendBackward);
    const bool is_stem = span.device == DeviceId{0};
    EXPECT_FALSE(is_stem && span.action.kind == ActionKind::kBackward);
  }
}

}  // namespace
}  // namespace frazil
