#pragma once
// Whether a run fills a cache of its frozen prefix, in which tier, and for how many samples: what
// that takes against going on without, by the prices of feature_store.h. Of N samples, seen in
// `epoch` steps, n are kept: in memory first, then on disk, as the executor does, or on disk alone.
// A step then works, on average,
//   work(0) = fills,  work(N) = reads,
//   work(n) = reads + fixed + (fills - reads - fixed) (N - n)/N   between,
// for the samples that are missing run the prefix in every micro-batch that has one of them, and
//   fill(n)  = epoch x fills + writing n
//   total(n) = fill(n) + (steps - epoch)/epoch x max(epoch x work(n), reading n)
// against steps x without. In each of the two ways total is a line in n up to where reading
// overtakes work, and rises from there on: only the ends of lines are looked at.

#include <cstdint>
#include <optional>
#include <string>

#include "planner/transitions/feature_store.h"

namespace frazil {

struct FillQuestion {
  FeatureStore store;
  Bytes of_sample;                 // that a sample takes, as it is kept
  std::int64_t micro_batches = 1;  // of an epoch
  Step epoch = 1;                  // steps in which each sample is seen once
  Step steps = 0;                  // to come while the features hold, those that fill among them
  // Of a step:
  Duration without{0};  // that goes on as the run does best without these
  Duration fills{0};    // that finds none of these, writing left out
  Duration reads{0};    // that finds all of them, reading left out
  Duration fixed{0};    // of fills - reads, what does not depend on how many are missing
};

// The best that can be kept. Where nothing fits, or no step is left to read in, nothing is.
struct FillChoice {
  std::int64_t in_memory = 0;  // samples
  std::int64_t on_disk = 0;
  Duration total{0};    // of the steps to come with them
  Duration without{0};  // of the same steps without
  Duration fill{0};     // of the epoch that fills
  Duration reading{0};  // of an epoch's features, beside its work
  // Steps from here on until filling has paid.
  std::optional<Step> break_even = std::nullopt;

  std::int64_t samples() const { return in_memory + on_disk; }
  bool pays() const { return samples() > 0 && total < without; }
};

FillChoice choose_fill(const FillQuestion& question);

// What keeping so many takes. Requires: question.steps > question.epoch, and room for them.
FillChoice price_fill(const FillQuestion& question, std::int64_t in_memory, std::int64_t on_disk);

// Why it is filled or not, in a clause: "30 of 48 samples pay after 14 of 24 steps and save 1.2
// ms".
std::string explain(const FillQuestion& question, const FillChoice& choice);

}  // namespace frazil
