// Samples are the same wherever they lie.

#include "exec/tensors/sample_source.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace frazil {
namespace {

// Ten samples of two inputs, which tell their numbers.
Samples make_numbered() {
  const at::Tensor numbers = at::arange(10, at::kLong);
  return {{numbers.to(at::kFloat).view({10, 1, 1, 1}).expand({10, 3, 2, 2}).contiguous(),
           numbers.view({10, 1}).mul(10).expand({10, 4}).contiguous()},
          numbers};
}

Samples rows(std::int64_t first, std::int64_t count) {
  Samples some = narrow(make_numbered(), first, count);
  for (at::Tensor& input : some.inputs) input = input.clone();
  some.labels = some.labels.clone();
  return some;
}

std::vector<std::int64_t> numbers_of(const Samples& samples) {
  const at::Tensor labels = samples.labels.contiguous();
  const auto* first = labels.const_data_ptr<std::int64_t>();
  return {first, first + labels.numel()};
}

bool are_equal(const Samples& a, const Samples& b) {
  return at::equal(a.inputs.at(0), b.inputs.at(0)) && at::equal(a.inputs.at(1), b.inputs.at(1)) &&
         at::equal(a.labels, b.labels);
}

// The second of the four places is empty.
SampleSource in_places() {
  return SampleSource(std::vector<Samples>{rows(0, 3), rows(3, 0), rows(3, 1), rows(4, 6)});
}

TEST(SampleSource, HasTheSamplesOfSeveralPlacesInOrder) {
  const SampleSource source = in_places();
  EXPECT_EQ(source.count(), 10);
  EXPECT_TRUE(are_equal(source.whole(), make_numbered()));
  const std::vector<std::int64_t> wanted{9, 0, 3, 3, 2, 4};
  const Samples found = source.gather(wanted);
  EXPECT_EQ(numbers_of(found), wanted);
  EXPECT_TRUE(are_equal(found, SampleSource(make_numbered()).gather(wanted)));
  EXPECT_EQ(numbers_of(source.narrow(2, 3)), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(source.gather({}).count(), 0);
  EXPECT_THROW((void)source.gather(std::vector<std::int64_t>{10}), std::logic_error);
  EXPECT_THROW((void)source.narrow(8, 3), std::logic_error);
}

TEST(SampleSource, OfOnePlaceHandsOutItsMemory) {
  const Samples samples = make_numbered();
  const SampleSource source(samples);
  EXPECT_EQ(source.narrow(4, 2).labels.const_data_ptr(),
            samples.labels.narrow(0, 4, 2).const_data_ptr());
  EXPECT_EQ(in_places().narrow(5, 2).count(), 2);
}

TEST(SampleSource, IsAChoiceOfAChoice) {
  const SampleSource odd = in_places().select({9, 7, 5, 3, 1});
  EXPECT_EQ(odd.count(), 5);
  EXPECT_EQ(numbers_of(odd.select({4, 0}).whole()), (std::vector<std::int64_t>{1, 9}));
  EXPECT_EQ(numbers_of(odd.narrow(1, 2)), (std::vector<std::int64_t>{7, 5}));
  EXPECT_EQ(odd.select({}).count(), 0);
  EXPECT_THROW((void)odd.select({5}), std::logic_error);
}

TEST(SampleSource, HasAHashThatPlacesAndChoicesDoNotChange) {
  const SampleSource whole(make_numbered());
  EXPECT_EQ(in_places().hash(), whole.hash());
  EXPECT_EQ(in_places().select({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).hash(), whole.hash());
  EXPECT_NE(in_places().select({1, 0, 2, 3, 4, 5, 6, 7, 8, 9}).hash(), whole.hash());
  EXPECT_EQ(whole.select({3, 4}).hash(7), SampleSource(rows(3, 2)).hash(7));
  EXPECT_NE(whole.hash(7), whole.hash());
  EXPECT_EQ(SampleSource().hash(7), 7U);
}

TEST(SampleSource, NormalizesByChannel) {
  const SampleSource source(std::vector<Samples>{rows(0, 5), rows(5, 5)},
                            {.mean = {0, 1, 0.25}, .deviation = {1, 2, 0.3}});
  const Samples found = source.gather(std::vector<std::int64_t>{7, 2});
  const at::Tensor plain = at::stack({at::full({2, 2}, 7.0F), at::full({2, 2}, (7.0F - 1) / 2),
                                      at::full({2, 2}, (7.0F - 0.25F) / 0.3F)});
  EXPECT_TRUE(at::equal(found.inputs[0][0], plain));
  EXPECT_TRUE(at::equal(found.inputs[1],
                        make_numbered().inputs[1].index_select(0, at::tensor({7, 2}, at::kLong))));
  EXPECT_TRUE(at::equal(source.narrow(7, 1).inputs[0], found.inputs[0].narrow(0, 0, 1)));
  EXPECT_EQ(source.hash(), SampleSource(make_numbered()).hash());
}

}  // namespace
}  // namespace frazil
