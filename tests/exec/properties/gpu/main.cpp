#include <gtest/gtest.h>

#include <cstdio>

#include "exec/devices/kernel_choice.h"
#include "profiles/error.h"
#include "tests/exec/properties/gpu/gpu_test.h"

namespace frazil {

const std::string& gpu_problem() {
  static const std::string problem = [] {
    try {
      check_devices(streams());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  return problem;
}

}  // namespace frazil

int main(int argc, char** argv) {
  frazil::prepare_kernels();
  testing::InitGoogleTest(&argc, argv);
  (void)frazil::gpu_problem();
  const int result = RUN_ALL_TESTS();
  const int skipped = testing::UnitTest::GetInstance()->skipped_test_count();
  if (skipped > 0 && !frazil::gpu_problem().empty()) {
    std::printf("%d tests skipped: %s\n", skipped, frazil::gpu_problem().c_str());
  }
  return result;
}
