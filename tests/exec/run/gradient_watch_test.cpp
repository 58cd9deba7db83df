#include "exec/run/gradient_watch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "exec/tensors/finite.h"

namespace frazil {
namespace {

const float kLargest = std::numeric_limits<float>::max();
const float kInfinity = std::numeric_limits<float>::infinity();
const float kNoNumber = std::numeric_limits<float>::quiet_NaN();

// Every place of tensors around the size of a block is tried, since a pass may end in a part of
// one.
TEST(IsFinite, FindsOneValueAtAnyPlace) {
  for (const std::int64_t size : {1, 7, 1023, 1024, 1025, 9000}) {
    at::Tensor tensor = at::full({size}, kLargest);
    EXPECT_TRUE(is_finite(tensor)) << size;
    for (const std::int64_t place : {std::int64_t{0}, size / 2, size - 1}) {
      for (const float bad : {kInfinity, -kInfinity, kNoNumber, -kNoNumber}) {
        tensor[place] = bad;
        EXPECT_FALSE(is_finite(tensor)) << bad << " at " << place << " of " << size;
        tensor[place] = -kLargest;
      }
    }
    EXPECT_TRUE(is_finite(tensor)) << size;
  }
  EXPECT_TRUE(is_finite(at::empty({0})));
}

TEST(IsFinite, LooksAtTheValuesOfAViewAlone) {
  at::Tensor tensor = at::zeros({4, 4});
  tensor[1][2] = kNoNumber;
  EXPECT_TRUE(is_finite(tensor.select(1, 1)));
  EXPECT_FALSE(is_finite(tensor.select(1, 2)));
  EXPECT_TRUE(std::isfinite(largest_magnitude(at::full({3, 3}, kLargest)).item<float>()));
  EXPECT_FALSE(std::isfinite(largest_magnitude(tensor).item<float>()));
}

TEST(GradientWatch, NamesTheLastLayerAndBeginsAnewWithEachStep) {
  GradientWatch watch;
  watch.begin();
  watch.look(LayerId{3}, {at::ones({5}), at::full({2}, kNoNumber)});
  watch.look(LayerId{4}, {at::ones({5})});
  watch.look(LayerId{1}, {at::full({2}, kInfinity)});
  watch.settle();
  EXPECT_EQ(watch.non_finite(), LayerId{3});
  watch.begin();
  watch.look(LayerId{3}, {at::ones({5})});
  watch.settle();
  EXPECT_EQ(watch.non_finite(), std::nullopt);
}

}  // namespace
}  // namespace frazil
