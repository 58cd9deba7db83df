#pragma once
// Decides whether a run fills a cache of its frozen prefix, in which tier, and for how many
// samples: compares the time with the cache and the time without it, by the prices of
// feature_store.h. An epoch has N samples, seen in `epoch` steps; n of them are kept, in memory
// first, then on disk, as the executor does, or on disk alone. A step then works, on average,
//   work(0) = fills,  work(N) = reads,
//   work(n) = reads + fixed + (fills - reads - fixed) (N - n)/N   between,
// for the samples that are missing run the prefix in every micro-batch that has one of them. The
// totals
//   fill(n)  = epoch x fills + writing n
//   total(n) = fill(n) + (steps - epoch)/epoch x max(epoch x work(n), reading n)
// are compared with steps x without. Where the pipelines have several caches that share nothing, a
// sample is looked for in any of them, which does not have it after e epochs with the probability
// (1 - 1/caches)^e: it is then computed and written again, which total(n) adds. In each of the two
// ways total is a line in n up to where reading overtakes work, and rises from there on, so that
// only the ends of lines are looked at.

#include <cstdint>
#include <optional>
#include <string>

#include "planner/transitions/feature_store.h"

namespace frazil {

struct FillQuestion {
  FeatureStore store;
  Bytes of_sample;                 // size of a sample's features, as they are kept
  std::int64_t micro_batches = 1;  // of an epoch
  Step epoch = 1;                  // steps in which each sample is seen once
  Step steps = 0;                  // to come while the features hold, the filling ones included
  // The following are times of one step.
  Duration without{0};  // the best that the run can do without these features
  Duration fills{0};    // a step that finds no features, writing left out
  Duration reads{0};    // a step that finds all features, reading left out
  Duration fixed{0};    // part of fills - reads that does not depend on how many are missing
  int caches = 1;       // that share nothing; `store` is one of them
};

// The best choice. Nothing is kept if nothing fits, or if no step is left to read in.
struct FillChoice {
  std::int64_t in_memory = 0;  // samples
  std::int64_t on_disk = 0;
  Duration total{0};    // time of the steps to come, with the features
  Duration without{0};  // time of the same steps, without the features
  Duration fill{0};     // time of the epoch that fills
  Duration reading{0};  // time to read an epoch's features, work left out
  // Steps from here on until filling has paid; none: it never does.
  std::optional<Step> break_even = std::nullopt;

  std::int64_t samples() const { return in_memory + on_disk; }
  bool pays() const { return samples() > 0 && total < without; }
};

// Returns the choice of the least total; it may still be above `without` (FillChoice::pays).
FillChoice choose_fill(const FillQuestion& question);

// Returns the times if so many samples are kept. Requires: question.steps > question.epoch, and
// room for the samples.
FillChoice price_fill(const FillQuestion& question, std::int64_t in_memory, std::int64_t on_disk);

// Tells in a clause why the cache is filled or not:
//   "30 of 48 samples pay after 14 of 24 steps and save 1.2 ms"
std::string explain(const FillQuestion& question, const FillChoice& choice);

}  // namespace frazil
