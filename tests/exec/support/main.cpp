#include <gtest/gtest.h>

#include "exec/devices/numerics.h"

int main(int argc, char** argv) {
  frazil::prepare_numerics();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
