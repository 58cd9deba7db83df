#include "exec/models/imported/keyed_operations.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "exec/tensors/tensors.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr double kRate = 0.25;

at::Tensor draw_leaf(at::IntArrayRef sizes, std::uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::empty(sizes, at::kFloat).normal_(0, 1, generator).set_requires_grad(true);
}

void seed_eager() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_current_seed(11);
}

// Compares outputs and gradients of attention as PyTorch does it and written out, under the same
// draws of the default generator.
void expect_bits_of_pytorch(const Attention& call) {
  const Tensors leaves{call.query, call.key, call.value};
  seed_eager();
  const at::Tensor expected =
      at::scaled_dot_product_attention(call.query, call.key, call.value, call.mask, kRate,
                                       call.is_causal, call.scale, call.groups_queries);
  seed_eager();
  const at::Tensor found =
      attend(call, [](const at::Tensor& weights) { return at::dropout(weights, kRate, true); });
  EXPECT_TRUE(at::equal(found, expected));
  const at::Tensor gradient = draw_leaf(expected.sizes(), 9).detach();
  const Tensors of_expected = torch::autograd::grad({expected}, leaves, {gradient});
  const Tensors of_found = torch::autograd::grad({found}, leaves, {gradient});
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_TRUE(at::equal(of_found[i], of_expected[i])) << i;
  }
}

Attention make_attention(std::int64_t key_heads = 4) {
  return {.query = draw_leaf({3, 4, 5, 8}, 1),
          .key = draw_leaf({3, key_heads, 5, 8}, 2),
          .value = draw_leaf({3, key_heads, 5, 8}, 3),
          .mask = {},
          .scale = {}};
}

TEST(KeyedOperations, AttentionWrittenOutHasTheBitsOfPyTorch) {
  expect_bits_of_pytorch(make_attention());
  Attention call = make_attention();
  call.is_causal = true;
  expect_bits_of_pytorch(call);
  call = make_attention();
  call.scale = 0.3;
  call.mask = draw_leaf({5, 5}, 4).detach();
  expect_bits_of_pytorch(call);
  call.mask = draw_leaf({3, 1, 5, 5}, 4).detach().gt(-1);
  expect_bits_of_pytorch(call);
  call = make_attention(/*key_heads=*/2);
  call.groups_queries = true;
  expect_bits_of_pytorch(call);
}

TEST(KeyedOperations, DropoutsHaveTheBitsOfPyTorchWithTheSameMask) {
  const RandomKey key{.seed = 3, .step = 1, .micro_batch = MicroBatchId{2}};
  const DrawPlace place{LayerId{4}, 1};
  const at::Tensor x = draw_leaf({3, 4, 5}, 1);
  const at::Tensor mask =
      draw_keyed_mask(x.sizes(), x.options().requires_grad(false), kRate, place, key);
  EXPECT_TRUE(at::equal(drop_by_key(x, kRate, place, key), x * mask));
  at::Tensor copy = x.detach().clone();
  drop_in_place_by_key(copy, kRate, place, key);
  EXPECT_TRUE(at::equal(copy, x * mask));
  const at::Tensor channels = drop_channels_by_key(x, kRate, place, key);
  const at::Tensor kept = (channels != 0).to(at::kFloat);
  EXPECT_TRUE(at::equal(kept, kept.amax({2}, true).expand({3, 4, 5})));

  const auto [found, truth] = native_drop_by_key(x, kRate, place, key);
  const at::Tensor gradient = draw_leaf(x.sizes(), 9).detach();
  EXPECT_TRUE(at::equal(truth, mask != 0));
  EXPECT_TRUE(at::equal(torch::autograd::grad({found}, {x}, {gradient}).at(0),
                        at::native_dropout_backward(gradient, truth, 1 / (1 - kRate))));
}

TEST(KeyedOperations, ARateOfOneLeavesZerosAndARateOfZeroAll) {
  const at::Tensor x = draw_leaf({3, 4}, 1);
  const RandomKey key;
  for (const auto& drop : {drop_by_key, drop_channels_by_key}) {
    EXPECT_TRUE(at::equal(drop(x, 1, {}, key), at::zeros({3, 4})));
    EXPECT_TRUE(at::equal(drop(x, 0, {}, key), x));
  }
  EXPECT_TRUE(at::equal(std::get<0>(native_drop_by_key(x, 1, {}, key)), at::zeros({3, 4})));
}

TEST(KeyedOperations, ASliceWhoseRowsAreNoSamplesIsRefused) {
  RandomKey slice;
  slice.rows = SampleRows{.first = 0, .count = 2, .all = 4};
  EXPECT_THROW(drop_by_key(draw_leaf({3, 4}, 1), kRate, {}, slice), InfeasibleError);
}

}  // namespace
}  // namespace frazil
