#include "exec/measuring/stash_meter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace frazil {
namespace {

at::Tensor make_floats(std::int64_t count) { return at::zeros({count}, at::kFloat); }

TEST(CountStash, IsWhatIsAliveBesidesTheOutputsAndTheInputs) {
  const Tensors inputs{make_floats(10)};
  const AllocationMeter meter;
  const at::Tensor kept = make_floats(7);
  const Tensors outputs{make_floats(5)};
  EXPECT_EQ(count_stash(meter, inputs, outputs), 4 * (7 + 10));
}

TEST(CountStash, TakesAnInputThatIsPassedOnForAnInputAlone) {
  const Tensors inputs{make_floats(10)};
  const AllocationMeter meter;
  EXPECT_EQ(count_stash(meter, inputs, {inputs[0]}), 4 * 10);
}

TEST(CountStash, TakesAValueThatIsHandedOutSeveralTimesForOne) {
  const Tensors inputs{make_floats(10)};
  const AllocationMeter meter;
  const at::Tensor made = make_floats(6);
  EXPECT_EQ(count_stash(meter, inputs, {made, made.alias(), made}), 4 * 10);
}

TEST(CountStash, IsNeverLessThanTheInputsWhereAnOutputIsAViewOfParameters) {
  const Tensors inputs{make_floats(10)};
  const at::Tensor parameter = make_floats(3);
  const AllocationMeter meter;
  EXPECT_EQ(count_stash(meter, inputs, {parameter.expand({50, 3})}), 4 * 10);
}

}  // namespace
}  // namespace frazil
