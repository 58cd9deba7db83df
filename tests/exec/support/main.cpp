#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "exec/devices/kernel_choice.h"

namespace {

// With FRAZIL_OTHER_KERNELS the tests run under another branch than the one that programs take.
// Returns false if this machine has no other that holds.
bool choose_kernels() {
  if (std::getenv("FRAZIL_OTHER_KERNELS") != nullptr) {
    const auto folder = frazil::cache_folder();
    if (!folder) return false;
    const auto trials = frazil::known_trials(*folder);
    const auto branch = trials ? frazil::other_branch(*trials) : std::nullopt;
    if (!branch) return false;
    std::printf("under the kernels of %s\n", branch->c_str());
    ::setenv("MKL_CBWR", branch->c_str(), /*overwrite=*/1);
  }
  frazil::prepare_kernels();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  if (!choose_kernels()) {
    std::puts("skipped: no other kernels hold on this machine");
    return kSkipped;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
