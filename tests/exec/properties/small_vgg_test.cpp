// Two norms in a layer, convolutions in each channel alone, and a pooling of an odd side.

#include <gtest/gtest.h>

#include "tests/exec/models/model_checks.h"

namespace frazil {
namespace {

TEST(SmallVgg, OnOneDeviceHasTheBitsOfAPlainProgram) { expect_plain_bits(small_vgg_model()); }

TEST(SmallVgg, UnderMasksHasTheBitsOfAPlainProgram) {
  for (const std::string mask : {"011", "001", "101"}) expect_plain_bits(small_vgg_model(), mask);
}

TEST(SmallVgg, HasTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(small_vgg_model(), clipped_adamw()), 37);
}

}  // namespace
}  // namespace frazil
