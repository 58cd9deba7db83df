#pragma once
// The baseline of a guard: what a good day took, thing by thing, how unsteadily, and on what. A
// thing is measured once per block: a block of steps of a run, or a step of a trace.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

enum class GuardedKind {
  kStep,        // ns of a whole step
  kLayer,       // ns of a layer's forward and backward
  kLink,        // ns of a message or of moving bytes
  kPrediction,  // a step's time over its prediction from its layers
  kHost,        // what all layers share; follows from them and is in no baseline
};

std::string_view name_of(GuardedKind kind);  // "step", "layer", "link", "prediction", "host"
// Returns "layer block0", "link latency", "step"; a kind is not said again where the name says it.
std::string name_thing(GuardedKind kind, const std::string& name);

// One thing's values, one per block, all above 0.
struct GuardedSeries {
  GuardedKind kind = GuardedKind::kLayer;
  std::string name;
  std::vector<double> values;
};

// What a series comes to.
struct GuardedValue {
  GuardedKind kind = GuardedKind::kLayer;
  std::string name;
  double median = 0;
  // Spread of a block's value, as a share of the median: 1.4826 x the median absolute deviation,
  // which is the standard deviation where blocks scatter normally (Rousseeuw & Croux 1993).
  double noise = 0;
  int blocks = 0;

  friend bool operator==(const GuardedValue&, const GuardedValue&) = default;
};

// Requires: at least one value.
GuardedValue sum_up(const GuardedSeries& series);
// The same of several; a series without values, or with the median 0, is left out.
std::vector<GuardedValue> sum_up(const std::vector<GuardedSeries>& series);

struct Baseline {
  Provenance question;     // what was run; a later measurement has the same, or is refused
  Provenance fingerprint;  // where; differences are told
  std::uint64_t seed = 0;  // of the measurement
  std::vector<GuardedValue> values;

  friend bool operator==(const Baseline&, const Baseline&) = default;
};

// Blocks, or steps of a trace, without which a day tells nothing: a spread over fewer is no noise.
inline constexpr int kFewestBaselineBlocks = 6;
// Twice the noise of a step above which a day tells nothing either: it would pass almost anything.
inline constexpr double kLargestBar = 0.2;

// Throws InputError{file} unless both were asked the same and have the same layers.
void refuse_other_question(const Baseline& baseline, const Baseline& today,
                           const std::string& file);

}  // namespace frazil
