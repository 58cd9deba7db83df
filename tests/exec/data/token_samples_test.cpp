#include "exec/data/token_samples.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace frazil {
namespace {

constexpr int kVocabulary = 12;
constexpr int kTokens = 10;

SampleForm text_form() {
  return {.inputs = {token_form(InputMeaning::kTokens, kTokens, kVocabulary)},
          .labels = LabelMeaning::kNextToken,
          .label_shape = {kTokens},
          .classes = kVocabulary};
}

SampleForm masked_form(int classes) {
  return {.inputs = {token_form(InputMeaning::kTokens, kTokens, kVocabulary),
                     token_form(InputMeaning::kSegments, kTokens, 2),
                     token_form(InputMeaning::kMask, kTokens, 2)},
          .classes = classes};
}

bool same(const Samples& a, const Samples& b) {
  bool equal = at::equal(a.labels, b.labels) && a.inputs.size() == b.inputs.size();
  for (std::size_t i = 0; equal && i < a.inputs.size(); ++i) {
    equal = at::equal(a.inputs[i], b.inputs[i]);
  }
  return equal;
}

TEST(TokenSamples, FollowFromTheirArgumentsAndTrainingFromItsOwn) {
  for (const SampleForm& form : {text_form(), masked_form(3)}) {
    const Dataset one = make_token_samples(30, 7, form, 5);
    EXPECT_TRUE(same(one.train.whole(), make_token_samples(30, 9, form, 5).train.whole()));
    EXPECT_TRUE(same(one.test.whole(), make_token_samples(40, 7, form, 5).test.whole()));
    EXPECT_FALSE(same(one.train.whole(), make_token_samples(30, 7, form, 6).train.whole()));
    EXPECT_FALSE(same(one.train.narrow(0, 7), one.test.whole()));
    EXPECT_EQ(one.train.count(), 30);
    EXPECT_EQ(one.test.count(), 7);
  }
}

TEST(TokenSamples, AsTextHaveLabelsOneTokenFurtherAndASuccessorForEachToken) {
  const Samples text = make_token_samples(400, 1, text_form(), 1).train.whole();
  const at::Tensor& ids = text.inputs.at(0);
  EXPECT_TRUE(at::equal(ids.narrow(1, 1, kTokens - 1), text.labels.narrow(1, 0, kTokens - 1)));
  std::map<std::int64_t, std::map<std::int64_t, int>> followers;
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    ++followers[ids.view(-1)[i].item<std::int64_t>()][text.labels.view(-1)[i].item<std::int64_t>()];
  }
  EXPECT_EQ(followers.size(), kVocabulary);
  std::set<std::int64_t> successors;
  int usual = 0;
  for (const auto& [token, counts] : followers) {
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_TRUE(successors.insert(most->first).second);
    usual += most->second;
  }
  // 7 of 8, and one in twelve of the rest; four standard deviations are 2 percent.
  EXPECT_NEAR(usual / 4000.0, 7.0 / 8 + 1.0 / 96, 0.022);
}

TEST(TokenSamples, WithAMaskEndEarlierAndHoldNothingBehindTheEnd) {
  const Samples samples = make_token_samples(200, 1, masked_form(3), 2).train.whole();
  const at::Tensor lengths = samples.inputs.at(2).sum(1);
  EXPECT_EQ(lengths.min().item<std::int64_t>(), kTokens / 2);
  EXPECT_EQ(lengths.max().item<std::int64_t>(), kTokens);
  const at::Tensor stands = at::arange(kTokens).unsqueeze(0).lt(lengths.unsqueeze(1));
  EXPECT_TRUE(at::equal(samples.inputs.at(2).to(at::kBool), stands));
  for (const at::Tensor& input : samples.inputs) {
    EXPECT_EQ(input.masked_select(stands.logical_not()).abs().sum().item<std::int64_t>(), 0);
  }
  EXPECT_TRUE(at::equal(samples.inputs.at(1).sum(1), at::div(lengths, 2, "floor")));
  EXPECT_EQ(samples.inputs.at(0).max().item<std::int64_t>(), kVocabulary - 1);
}

// Samples with the same tokens, in whatever order, are of one class.
TEST(TokenSamples, AreOfTheClassThatTheirTokensDecide) {
  SampleForm form = masked_form(3);
  form.inputs = {token_form(InputMeaning::kTokens, 2, 4)};
  const Samples samples = make_token_samples(600, 1, form, 3).train.whole();
  std::map<std::set<std::int64_t>, std::set<std::int64_t>> classes;
  std::map<std::int64_t, int> counts;
  for (std::int64_t i = 0; i < samples.count(); ++i) {
    const at::Tensor row = samples.inputs.at(0)[i];
    const auto label = samples.labels[i].item<std::int64_t>();
    classes[{row[0].item<std::int64_t>(), row[1].item<std::int64_t>()}].insert(label);
    ++counts[label];
  }
  EXPECT_EQ(classes.size(), 10);
  for (const auto& [tokens, found] : classes) EXPECT_EQ(found.size(), 1U);
  EXPECT_GE(counts.size(), 2U);
}

}  // namespace
}  // namespace frazil
