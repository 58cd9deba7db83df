#include "exec/data/random_hierarchy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "exec/tensors/keyed_random.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostRightSides = 1 << 20;  // that are listed to draw from

// Says what a draw is for, so that rules and sentences of one seed are unrelated.
enum DrawKind : std::uint64_t { kRules, kSentences, kChoices };

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t product = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (product > kLargestQuantity / base) return kLargestQuantity;
    product *= base;
    if (base == 1) break;
  }
  return product;
}

// Returns number `code` written to the base of `symbols`.
Symbols spell(std::int64_t code, const HierarchyConfig& shape) {
  Symbols symbols(static_cast<std::size_t>(shape.branching));
  for (auto place = symbols.rbegin(); place != symbols.rend(); ++place) {
    *place = static_cast<std::uint16_t>(code % shape.symbols);
    code /= shape.symbols;
  }
  return symbols;
}

// Draws `count` different right sides, all choices equally likely: the first draws of a shuffle.
std::vector<Symbols> draw_right_sides(const HierarchyConfig& shape, int count, KeyedDraws& draws) {
  std::vector<std::int64_t> codes(static_cast<std::size_t>(count_right_sides(shape)));
  std::iota(codes.begin(), codes.end(), std::int64_t{0});
  std::vector<Symbols> sides;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::swap(codes[i], codes[i + draws.below(codes.size() - i)]);
    sides.push_back(spell(codes[i], shape));
  }
  return sides;
}

// Gives sentences that have not been given before.
class SentenceSource {
 public:
  SentenceSource(const RandomHierarchy& grammar, int classes, std::uint64_t seed)
      : grammar_(grammar), classes_(classes), seed_(seed) {}

  // A sentence with its class; next() takes the classes in turn.
  struct Labelled {
    Symbols sentence;
    int label = 0;
  };
  Labelled next() {
    const int label = static_cast<int>(given_ % classes_);
    for (std::uint64_t attempt = 0;; ++attempt) {
      KeyedDraws draws(seed_, kSentences, static_cast<std::uint64_t>(given_), attempt);
      const auto [place, is_new] = seen_.insert(grammar_.derive(label, draws.next()));
      if (!is_new) continue;
      ++given_;
      return {*place, label};
    }
  }

 private:
  const RandomHierarchy& grammar_;
  std::int64_t classes_;
  std::uint64_t seed_;
  std::int64_t given_ = 0;
  std::set<Symbols> seen_;
};

Samples make_part(SentenceSource& source, const HierarchyConfig& shape, int image, int count) {
  const std::int64_t pixels = std::int64_t{image} * image;
  const double spread = std::sqrt(shape.symbols - 1.0);
  const auto own = static_cast<float>(spread);
  const auto other = static_cast<float>(-1 / spread);
  Samples part{{at::zeros({count, shape.symbols, image, image}, at::kFloat)},
               at::empty({count}, at::kLong)};
  float* sample = part.inputs[0].data_ptr<float>();
  for (std::int64_t i = 0; i < count; ++i, sample += shape.symbols * pixels) {
    const auto [sentence, label] = source.next();
    part.labels.data_ptr<std::int64_t>()[i] = label;
    for (std::size_t leaf = 0; leaf < sentence.size(); ++leaf) {
      for (std::int64_t symbol = 0; symbol < shape.symbols; ++symbol) {
        sample[symbol * pixels + static_cast<std::int64_t>(leaf)] =
            symbol == sentence[leaf] ? own : other;
      }
    }
  }
  return part;
}

}  // namespace

std::int64_t count_leaves(const HierarchyConfig& shape) {
  return power(shape.branching, shape.levels);
}

std::int64_t count_right_sides(const HierarchyConfig& shape) {
  return power(shape.symbols, shape.branching);
}

// There is one choice for each symbol above the leaves: 1 + b + ... + b^(levels - 1) choices, where
// b is `branching`.
std::int64_t count_sentences(const HierarchyConfig& shape) {
  std::int64_t choices = 0;
  for (int level = 0; level < shape.levels; ++level) {
    choices = std::min(choices + power(shape.branching, level), kLargestQuantity);
  }
  return power(shape.synonyms, choices);
}

std::optional<std::string> find_lacking(const HierarchyConfig& shape, std::int64_t samples,
                                        const SampleForm& form) {
  if (!form.tells_images_apart()) {
    return "a model that reads images, or data of kind \"synthetic\"";
  }
  const std::int64_t channels = form.inputs.front().shape.front();
  const std::int64_t image = form.inputs.front().shape.back();
  const auto named = [](const std::string& name, std::int64_t value) {
    return name + " (" + std::to_string(value) + ")";
  };
  const std::int64_t sides = count_right_sides(shape);
  if (sides > kMostRightSides) {
    return named("symbols", shape.symbols) + " to the power of " +
           named("branching", shape.branching) + " of at most " + std::to_string(kMostRightSides);
  }
  const std::int64_t parents =
      shape.levels == 1 ? form.classes : std::max<std::int64_t>(form.classes, shape.symbols);
  if (parents * shape.synonyms > sides) {
    return named("synonyms", shape.synonyms) + " for each of " + std::to_string(parents) +
           " symbols or classes among the " + std::to_string(sides) +
           " right sides of symbols and branching";
  }
  if (channels != shape.symbols) {
    return named("channels", channels) + " of the model equal to " +
           named("symbols", shape.symbols);
  }
  if (count_leaves(shape) > image * image) {
    return named("image", image) + " of the model with a pixel for each of " +
           std::to_string(count_leaves(shape)) + " leaves";
  }
  if (divide_up<std::int64_t>(samples, form.classes) > count_sentences(shape)) {
    return std::to_string(samples) + " samples of " + named("classes", form.classes) + " of " +
           std::to_string(count_sentences(shape)) + " sentences each";
  }
  return std::nullopt;
}

RandomHierarchy::RandomHierarchy(const HierarchyConfig& shape, int classes, std::uint64_t seed)
    : shape_(shape) {
  ENSURE(shape.levels >= 1 && shape.symbols >= 2 && shape.synonyms >= 1 && shape.branching >= 2 &&
             classes >= 2,
         "a grammar has levels, symbols and rules");
  for (int level = 0; level < shape.levels; ++level) {
    const int parents = level == 0 ? classes : shape.symbols;
    ENSURE(std::int64_t{parents} * shape.synonyms <= count_right_sides(shape),
           "no right side belongs to two symbols");
    KeyedDraws draws(seed, kRules, static_cast<std::uint64_t>(level), 0);
    levels_.push_back(draw_right_sides(shape, parents * shape.synonyms, draws));
  }
}

Symbols RandomHierarchy::derive(int label, std::uint64_t key) const {
  KeyedDraws draws(key, kChoices, 0, 0);
  Symbols sentence{static_cast<std::uint16_t>(label)};
  for (const std::vector<Symbols>& right_sides : levels_) {
    Symbols below;
    for (const std::size_t symbol : sentence) {
      const auto synonyms = static_cast<std::uint64_t>(shape_.synonyms);
      const Symbols& side = right_sides.at(symbol * synonyms + draws.below(synonyms));
      below.insert(below.end(), side.begin(), side.end());
    }
    sentence = std::move(below);
  }
  return sentence;
}

Dataset make_random_hierarchy(const HierarchyConfig& shape, int train, int test,
                              const SampleForm& form, std::uint64_t seed) {
  const std::optional<std::string> lacking = find_lacking(shape, std::int64_t{train} + test, form);
  ENSURE(!lacking, "a random hierarchy with " + lacking.value_or(""));
  const auto classes = static_cast<int>(form.classes);
  const auto image = static_cast<int>(form.inputs.front().shape.back());
  const RandomHierarchy grammar(shape, classes, seed);
  SentenceSource source(grammar, classes, seed);
  Dataset dataset{.name = "random-hierarchy",
                  .channels = shape.symbols,
                  .height = image,
                  .width = image,
                  .classes = classes,
                  .train = {},
                  .test = {}};
  dataset.train = make_part(source, shape, image, train);
  dataset.test = make_part(source, shape, image, test);
  return dataset;
}

}  // namespace frazil
