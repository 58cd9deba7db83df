#pragma once
// Worlds whose tensors travel over the fake NCCL: every rank has a GPU of its own, and another
// world beside it.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "exec/communication/in_process_communicator.h"
#include "exec/communication/nccl_communicator.h"
#include "tests/exec/communication/fake_nccl.h"

namespace frazil {

// Returns the ranks of `hosts`, all of a world or those of a process, with the fake NCCL for their
// tensors, rank r on GPU r.
inline std::vector<std::unique_ptr<Communicator>> over_fake_nccl(
    std::vector<std::unique_ptr<Communicator>> hosts, const CommunicatorOptions& options = {}) {
  for (std::unique_ptr<Communicator>& host : hosts) {
    const int gpu = host->rank();
    host = over_nccl(std::move(host),
                     {.table = &fake_nccl(), .gpu = gpu, .peers = {}, .waits = options});
  }
  return hosts;
}

inline std::vector<std::unique_ptr<Communicator>> make_fake_nccl_communicators(
    int ranks, const CommunicatorOptions& options = {}) {
  return over_fake_nccl(make_in_process_communicators(ranks, options), options);
}

// Tests of such worlds derive from this. What a world must leave behind when it is gone: nothing.
class FakeNcclTest : public testing::Test {
 protected:
  void SetUp() override { reset_fake_nccl(); }
  void TearDown() override {
    EXPECT_EQ(fake_nccl_violations(), std::vector<std::string>());
    EXPECT_EQ(fake_nccl_counts().live_ends, 0);
    EXPECT_EQ(fake_nccl_counts().live_marks, 0);
  }
};

}  // namespace frazil
