#pragma once
// What in a model profile was not measured: a doubt names the kind of number, how it came about,
// and why. Readers of other programs' files note their doubts, the profile keeps them, and every
// answer that rests on such numbers repeats them.

#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// Kinds of numbers in a profile, named as the keys of its file.
enum class DoubtedFact {
  kMicroBatchSize,  // the samples that times and sizes are for
  kParameters,      // parameter_bytes
  kOptimizerState,  // optimizer_state_bytes
  kUpdate,          // update_ns
  kStash,           // stash_bytes: saved activations
  kBoundaries,      // tensor_bytes_per_sample
};

enum class DoubtKind {
  kLowerBound,  // the truth is at least this
  kByRule,      // derived from other numbers; right where the rule holds
  kDefault,     // nobody said, so this was taken
  kUnknown,     // a placeholder
};

struct Doubt {
  DoubtedFact fact = DoubtedFact::kStash;
  DoubtKind kind = DoubtKind::kUnknown;
  std::string reason;  // one clause, as "each layer's input alone"

  friend bool operator==(const Doubt&, const Doubt&) = default;
};

// The words of a profile's file: "stash_bytes", "lower-bound".
std::string_view name_of(DoubtedFact fact);
std::string_view name_of(DoubtKind kind);

// The words of sentences: "saved activations", "a lower bound".
std::string_view words_of(DoubtedFact fact);
std::string_view words_of(DoubtKind kind);

inline constexpr DoubtedFact kDoubtedFacts[] = {
    DoubtedFact::kMicroBatchSize, DoubtedFact::kParameters, DoubtedFact::kOptimizerState,
    DoubtedFact::kUpdate,         DoubtedFact::kStash,      DoubtedFact::kBoundaries};
inline constexpr DoubtKind kDoubtKinds[] = {DoubtKind::kLowerBound, DoubtKind::kByRule,
                                            DoubtKind::kDefault, DoubtKind::kUnknown};

// True if a device's memory is counted from these numbers.
bool is_about_memory(DoubtedFact fact);

// Puts a doubt in its place, ascending by fact; one about the same fact is replaced.
void note_doubt(std::vector<Doubt>& doubts, Doubt doubt);

// Returns the condition under which a plan that fits by the profile really fits, as "saved
// activations and optimizer state take no more than the profile says"; returns nothing if no doubt
// is about memory.
std::string memory_condition(const std::vector<Doubt>& doubts);

}  // namespace frazil
