#pragma once
// The worlds that pass the contract of exec/communication/communicator.h, for tests that take each
// of them in turn. Tests are of two sets: the common ones, and those for worlds that match messages
// by tag, whatever their order. A new world is one entry in worlds.cpp.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/communication/communicator.h"
#include "tests/exec/communication/fake_nccl.h"

namespace frazil {

using Ranks = std::vector<std::unique_ptr<Communicator>>;

struct WorldKind {
  std::string name;  // letters and digits only
  // Returns all ranks of a new world, as threads of this process may play them. The ranks keep
  // alive what they need.
  std::function<Ranks(int ranks, const CommunicatorOptions&)> make;
  bool matches_by_tag = true;
  bool shares_memory = false;  // tensors are handed over by pointer
  // Holds what is sent until it is gone, and after an abort for a moment behind the next call.
  bool holds_sent = false;
  // Finds every ring of waits at once. In another world it ends with the deadline.
  bool sees_all_waits = false;
  // What a rank sends or tells has come for the others when its call returns. In another world it
  // comes soon after.
  bool comes_at_once = true;
};

std::vector<WorldKind> common_worlds();  // all of them
std::vector<WorldKind> worlds_by_tag();

// Tests of the contract derive from this.
class WorldTest : public testing::TestWithParam<WorldKind> {
 protected:
  void SetUp() override { reset_fake_nccl(); }
  void TearDown() override { EXPECT_EQ(fake_nccl_violations(), std::vector<std::string>()); }
  static Ranks make_world(int ranks, const CommunicatorOptions& options = {}) {
    return GetParam().make(ranks, options);
  }
};

inline std::string name_world(const testing::TestParamInfo<WorldKind>& info) {
  return info.param.name;
}

}  // namespace frazil

// For a class that derives from WorldTest.
#define IN_COMMON_WORLDS(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(common_worlds()), name_world)
#define IN_WORLDS_BY_TAG(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(worlds_by_tag()), name_world)
