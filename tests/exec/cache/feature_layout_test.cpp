// Tensors of a micro-batch become records by sample and come back in any other micro-batch.

#include "exec/cache/feature_layout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "exec/cache/prefix_cache.h"
#include "exec/run/run.h"
#include "planner/transitions/feature_store.h"
#include "tests/exec/models/test_models.h"

namespace frazil {
namespace {

// Three tensors cross a depth: hidden states, a mask and token types.
Tensors make_tensors(std::int64_t samples) {
  at::Tensor hidden = at::randn({samples, 3, 5});
  hidden[0][0][0] = std::numeric_limits<float>::quiet_NaN();
  hidden[0][0][1] = -0.0F;
  hidden[0][0][2] = std::numeric_limits<float>::denorm_min();
  return {hidden, at::rand({samples, 7}) > 0.5, at::arange(samples) * 1000003};
}

Tensors read_back(const Tensors& tensors, FeaturePrecision precision,
                  const std::vector<std::int64_t>& wanted) {
  const FileSystem files = real_file_system();
  const std::int64_t samples = tensors[0].size(0);
  const FeatureLayout layout(tensors, precision);
  FeatureCache cache(files, {Bytes{1 << 20}, {}, {}}, samples, 1, layout.feature());
  cache.use({.layers = {1}, .precision = precision}, layout.feature());
  std::vector<std::int64_t> order;
  for (std::int64_t sample = 0; sample < samples; ++sample) order.push_back(sample);
  layout.store(cache, order, 0, tensors);
  return layout.read(cache, cache.find(wanted, 0));
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(),
                     a.nbytes()) == 0;
}

at::Tensor rows(const at::Tensor& tensor, const std::vector<std::int64_t>& wanted) {
  return tensor.index_select(0, at::tensor(wanted));
}

TEST(FeatureLayout, GivesBackEveryBitOfFloat32AndOfWhatIsNoFloat) {
  const std::vector<std::int64_t> wanted{4, 0, 2};
  for (const std::size_t count : {1U, 3U}) {
    Tensors tensors = make_tensors(6);
    tensors.resize(count);
    const Tensors back = read_back(tensors, FeaturePrecision::kFloat32, wanted);
    ASSERT_EQ(back.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(same_bits(back[i], rows(tensors[i], wanted)));
    }
  }
}

TEST(FeatureLayout, RoundsToBfloat16WhatIsFloat) {
  const std::vector<std::int64_t> wanted{1, 5};
  const Tensors tensors = make_tensors(6);
  const Tensors back = read_back(tensors, FeaturePrecision::kBfloat16, wanted);
  EXPECT_TRUE(same_bits(back[0], rows(tensors[0], wanted).to(at::kBFloat16).to(at::kFloat)));
  EXPECT_TRUE(same_bits(back[1], rows(tensors[1], wanted)));
  EXPECT_TRUE(same_bits(back[2], rows(tensors[2], wanted)));
}

TEST(FeatureLayout, CountsTheBytesOfASample) {
  const Tensors tensors = make_tensors(4);
  EXPECT_EQ(FeatureLayout(tensors, FeaturePrecision::kFloat32).feature().count, 15 * 4 + 7 + 8);
  EXPECT_EQ(FeatureLayout(tensors, FeaturePrecision::kBfloat16).feature().count, 15 * 2 + 7 + 8);
}

TEST(FeatureLayout, StoresWhatIsNotContiguous) {
  const Tensors tensors{at::randn({5, 6}).t()};
  const std::vector<std::int64_t> wanted{5, 1};
  EXPECT_TRUE(same_bits(read_back(tensors, FeaturePrecision::kFloat32, wanted)[0],
                        rows(tensors[0], wanted)));
}

// The planner counts a cache by the features of its own depth, while slots of a cache hold the
// features of any depth.
TEST(PrefixCache, HasSlotsAsLargeAsTheLargestDepth) {
  const TestModel model = small_cnn_model();
  frazil::Run run(model.spec, {}, 7, 1);
  const ModelProfile& structure = run.structure();
  Bytes largest;
  std::pair<int, Bytes> smallest{0, Bytes{1 << 30}};
  for (int depth = 1; depth < model.layers(); ++depth) {
    const auto size = find_feature_bytes(structure, depth);
    if (!size) continue;
    largest = std::max(largest, *size);
    if (*size < smallest.second) smallest = {depth, *size};
  }
  ASSERT_LT(smallest.second, largest) << "depths of several sizes";
  constexpr std::int64_t kSamples = 40;
  const Bytes limit = smallest.second * kSamples;
  EXPECT_TRUE(
      find_room({kSamples, {limit, {}}, {}}, FeatureTier::kMemory, structure, smallest.first)
          .has_value());
  const FileSystem files = real_file_system();
  const PrefixCache cache(model.spec, run.outputs(model.samples({.seed = 3})[0]), kSamples, files,
                          {.limits = {limit, {}, {}}});
  EXPECT_EQ(cache.bytes_per_sample(smallest.first), smallest.second);
  EXPECT_EQ(cache.room(), limit.count / ((largest.count + 63) / 64 * 64));
  EXPECT_LT(cache.room(), kSamples);
}

}  // namespace
}  // namespace frazil
