#pragma once
// The random hierarchy model (Cagnetti et al. 2023, arXiv 2307.02129) makes sentences of a random
// context-free grammar; a network learns to tell which class each was derived from. Every level has
// `symbols` symbols; those of the highest level are the classes. Each symbol has `synonyms` right
// sides of `branching` symbols of the level below, and no right side belongs to two symbols: so a
// sentence has one derivation and one class. Deep networks learn the model level by level, lowest
// first, from about classes x synonyms^levels samples.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/tensors/sample_form.h"

namespace frazil {

// The shape of a grammar; its classes are the model's.
struct HierarchyConfig {
  int levels = 3;
  int symbols = 8;
  int synonyms = 4;
  int branching = 2;
  friend bool operator==(const HierarchyConfig&, const HierarchyConfig&) = default;
};

// These functions count what their names say; all three saturate at kLargestQuantity.
std::int64_t count_leaves(const HierarchyConfig& shape);       // in a sentence
std::int64_t count_right_sides(const HierarchyConfig& shape);  // that a level can choose from
std::int64_t count_sentences(const HierarchyConfig& shape);    // of a class

// Returns what so many samples of training and test together would need of the shape, or of the
// model that reads samples of this form, in a few words; none if nothing is lacking.
std::optional<std::string> find_lacking(const HierarchyConfig& shape, std::int64_t samples,
                                        const SampleForm& form);

// The symbols of a rule's right side or of a sentence.
using Symbols = std::vector<std::uint16_t>;

class RandomHierarchy {
 public:
  // Draws a grammar from the seed alone, the same on every machine. Requires: enough right sides
  // for all symbols.
  RandomHierarchy(const HierarchyConfig& shape, int classes, std::uint64_t seed);

  // Returns the right sides of a level. Level 0 derives from classes, the last level derives
  // leaves; synonym k of symbol a is at a x synonyms + k.
  const std::vector<Symbols>& right_sides(int level) const {
    return levels_.at(level_index(level));
  }
  // Returns a sentence of the class, drawn with the key: all are equally likely.
  Symbols derive(int label, std::uint64_t key) const;

 private:
  static std::size_t level_index(int level) { return static_cast<std::size_t>(level); }

  HierarchyConfig shape_;
  std::vector<std::vector<Symbols>> levels_;
};

// Makes sentences as images: leaf k, row by row, is a pixel with a channel for each symbol, sqrt(v
// - 1) in the channel of its own symbol and -1 / sqrt(v - 1) in the rest, where v is `symbols`
// (mean 0, variance 1); pixels beyond the leaves are 0. No sentence comes twice in both parts
// together, and classes are equally frequent up to one sample. The training part is the same
// whatever the size of the test part is. Requires: find_lacking() returns none.
Dataset make_random_hierarchy(const HierarchyConfig& shape, int train, int test,
                              const SampleForm& form, std::uint64_t seed);

}  // namespace frazil
