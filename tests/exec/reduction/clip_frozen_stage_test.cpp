// A device that holds frozen layers alone has no part in clipping: it has no gradients and no
// barrier, and nobody waits for it.

#include <gtest/gtest.h>

#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

std::uint64_t hash_of(const PlanShape& shape) {
  OptimizerConfig optimizer;
  optimizer.clip_norm = 0.5;
  Run run(make_vit(small_config()), optimizer, 7, devices_of(shape));
  run.transition_to(make_small_plan(run.structure(), shape));
  run.step(0, 1e-2, small_micro_batches(0, 6));
  return run.weight_hash();
}

TEST(Clip, DoesNotWaitForADeviceWithFrozenLayersAlone) {
  const std::uint64_t expected = hash_of({.mask = "00011"});
  EXPECT_EQ(hash_of({.cuts = {{3}}, .mask = "00011"}), expected);
  EXPECT_EQ(hash_of({.cuts = {{1, 3}}, .mask = "00011"}), expected);
  EXPECT_EQ(hash_of({.cuts = {{3}, {5}}, .owned = {2, 4}, .mask = "00011"}), expected);
}

}  // namespace
}  // namespace frazil
