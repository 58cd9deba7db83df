#pragma once
// What the tests on GPUs share. Without a GPU each is skipped, with the reason.

#include <gtest/gtest.h>

#include "exec/run/run.h"

namespace frazil {

// Why there is no GPU to test on; empty where there is one. Asked before the first step of the
// process.
const std::string& gpu_problem();

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_problem().empty()) GTEST_SKIP() << gpu_problem();
  }
};

// Streams of the first GPU, with parts of their own or not.
inline DeviceChoice streams(bool splits = true) {
  return {.kind = DeviceKind::kCuda, .gpus = {0}, .splits = splits, .plugin = {}};
}

}  // namespace frazil
