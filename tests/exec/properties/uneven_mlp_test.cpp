// The layers have very different widths.

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

}  // namespace
}  // namespace frazil
