#include "exec/data/token_samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "exec/tensors/keyed_random.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Numbers = std::vector<std::int64_t>;

// Says what a draw is for, so that rules and samples of one seed are unrelated.
enum TokenDraws : std::uint64_t { kSuccessors = 0x746f6b, kScores, kTrainTexts, kTestTexts };

constexpr std::uint64_t kAnyTokenIn = 8;  // one of so many tokens is not its forerunner's successor
constexpr int kScoreShift = 44;           // leaves scores of 20 bits, whose sums do not overflow

const InputForm& find_tokens(const SampleForm& form) {
  const auto tokens =
      std::find_if(form.inputs.begin(), form.inputs.end(),
                   [](const InputForm& input) { return input.meaning == InputMeaning::kTokens; });
  ENSURE(tokens != form.inputs.end() && tokens->shape.size() == 1 && tokens->end > 0,
         "a form of tokens");
  return *tokens;
}

bool has_mask(const SampleForm& form) {
  return std::any_of(form.inputs.begin(), form.inputs.end(),
                     [](const InputForm& input) { return input.meaning == InputMeaning::kMask; });
}

// A permutation, so that no token is rarer than others.
Numbers draw_successors(std::int64_t vocabulary, std::uint64_t seed) {
  Numbers successors(static_cast<std::size_t>(vocabulary));
  std::iota(successors.begin(), successors.end(), std::int64_t{0});
  KeyedDraws draws(seed, kSuccessors, 0, 0);
  for (std::size_t i = 0; i + 1 < successors.size(); ++i) {
    std::swap(successors[i], successors[i + draws.below(successors.size() - i)]);
  }
  return successors;
}

class TokenSource {
 public:
  TokenSource(const SampleForm& form, std::uint64_t seed)
      : form_(form),
        seed_(seed),
        tokens_(find_tokens(form).shape.front()),
        vocabulary_(find_tokens(form).end),
        is_cut_(has_mask(form)) {
    if (form.labels == LabelMeaning::kNextToken) successors_ = draw_successors(vocabulary_, seed);
  }

  Samples make(TokenDraws part, std::int64_t count) const {
    Samples made;
    for (const InputForm& input : form_.inputs) {
      Numbers shape{count};
      shape.insert(shape.end(), input.shape.begin(), input.shape.end());
      made.inputs.push_back(at::zeros(shape, at::kLong));
    }
    Numbers shape{count};
    shape.insert(shape.end(), form_.label_shape.begin(), form_.label_shape.end());
    made.labels = at::zeros(shape, at::kLong);
    for (std::int64_t sample = 0; sample < count; ++sample) fill(part, sample, made);
    return made;
  }

 private:
  void fill(TokenDraws part, std::int64_t sample, Samples& made) const {
    KeyedDraws draws(seed_, part, static_cast<std::uint64_t>(sample), 0);
    const bool is_text = form_.labels == LabelMeaning::kNextToken;
    const std::int64_t shortest = is_cut_ ? std::max<std::int64_t>(tokens_ / 2, 1) : tokens_;
    const std::int64_t length = shortest + below(draws, tokens_ - shortest + 1);
    const Numbers text = is_text ? draw_text(length + 1, draws) : draw_tokens(length, draws);
    for (std::size_t i = 0; i < form_.inputs.size(); ++i) {
      std::int64_t* const row = made.inputs[i].data_ptr<std::int64_t>() + sample * tokens_;
      for (std::int64_t place = 0; place < length; ++place) {
        row[place] = value_of(form_.inputs[i], text, place, length);
      }
    }
    std::int64_t* const labels = made.labels.data_ptr<std::int64_t>();
    if (is_text) {
      std::copy_n(text.begin() + 1, length, labels + sample * tokens_);
    } else {
      labels[sample] = find_class(text);
    }
  }

  static std::int64_t value_of(const InputForm& input, const Numbers& text, std::int64_t place,
                               std::int64_t length) {
    switch (input.meaning) {
      case InputMeaning::kTokens:
        return text[static_cast<std::size_t>(place)];
      case InputMeaning::kSegments:
        return place * input.end / length;
      case InputMeaning::kMask:
        return 1;
      case InputMeaning::kImage:
      case InputMeaning::kNumbers:
        break;
    }
    ENSURE(false, "a form of tokens");
  }

  static std::int64_t below(KeyedDraws& draws, std::int64_t bound) {
    return static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(bound)));
  }

  Numbers draw_tokens(std::int64_t length, KeyedDraws& draws) const {
    Numbers text;
    while (std::ssize(text) < length) text.push_back(below(draws, vocabulary_));
    return text;
  }

  Numbers draw_text(std::int64_t length, KeyedDraws& draws) const {
    Numbers text = draw_tokens(1, draws);
    while (std::ssize(text) < length) {
      const bool is_any = draws.below(kAnyTokenIn) == 0;
      text.push_back(is_any ? below(draws, vocabulary_)
                            : successors_[static_cast<std::size_t>(text.back())]);
    }
    return text;
  }

  std::int64_t find_class(const Numbers& text) const {
    Numbers sums(static_cast<std::size_t>(form_.classes));
    for (const std::int64_t token : text) {
      KeyedDraws scores(seed_, kScores, static_cast<std::uint64_t>(token), 0);
      for (std::int64_t& sum : sums) {
        sum += static_cast<std::int64_t>(scores.next() >> kScoreShift);
      }
    }
    return std::max_element(sums.begin(), sums.end()) - sums.begin();
  }

  const SampleForm& form_;
  std::uint64_t seed_;
  std::int64_t tokens_;
  std::int64_t vocabulary_;
  bool is_cut_;
  Numbers successors_;  // by token, of texts
};

}  // namespace

Dataset make_token_samples(int train, int test, const SampleForm& form, std::uint64_t seed) {
  const TokenSource source(form, seed);
  return {.name = "synthetic",
          .channels = 0,
          .classes = static_cast<int>(form.classes),
          .train = source.make(kTrainTexts, train),
          .test = source.make(kTestTexts, test)};
}

}  // namespace frazil
