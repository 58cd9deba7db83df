// The layers have very different widths.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

TEST(UnevenMlp, OnOneDeviceHasTheBitsOfAPlainProgram) { expect_plain_bits(uneven_mlp_model()); }

TEST(UnevenMlp, UnderEveryMaskHasTheBitsOfAPlainProgram) {
  for (int bits = 0; bits < 32; ++bits) {
    std::string mask;
    for (int b = 0; b < 5; ++b) mask += ((bits >> b) & 1) != 0 ? '1' : '0';
    expect_plain_bits(uneven_mlp_model(), mask + "1");
  }
}

TEST(UnevenMlp, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(uneven_mlp_model(), momentum_sgd()), 45);
}

// As where one kernel trains and another, with other bits, does not.
TEST(UnevenMlp, OfKernelsThatFollowGradientsHasTheBitsOfOneDeviceUnderEveryPlan) {
  TestModel model = uneven_mlp_model();
  for (LayerSpec& layer : model.spec.layers) {
    layer.follows_gradients = true;
    layer.forward = [forward = layer.forward](const LayerCall& call) {
      Tensors outputs = forward(call);
      if (c10::GradMode::is_enabled()) outputs.front() = outputs.front() * 1.5;
      return outputs;
    };
  }
  EXPECT_GE(expect_bits_of_one_device(model, momentum_sgd()), 45);
}

}  // namespace
}  // namespace frazil
