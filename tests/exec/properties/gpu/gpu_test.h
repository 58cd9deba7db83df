#pragma once
// The tests on GPUs share this. Without a GPU each is skipped, with the reason.

#include <gtest/gtest.h>

#include "exec/run/run.h"

namespace frazil {

// Says why there is no GPU to test on; empty where there is one. The answer is asked for before the
// first step of the process.
const std::string& gpu_problem();

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_problem().empty()) GTEST_SKIP() << gpu_problem();
  }
};

// Returns streams of the first GPU, with parts of their own or not. The host runs ahead of them, or
// waits after every action.
inline DeviceChoice streams(bool splits = true, bool waits = false) {
  return {.kind = DeviceKind::kCuda, .gpus = {0}, .splits = splits, .waits = waits, .plugin = {}};
}

}  // namespace frazil
