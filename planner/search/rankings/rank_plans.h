#pragma once
// The ranking that `frazil plan` prints and a run takes its plans from that follows no trajectory:
// one question with one set of defaults, so that both answer the same files with the same plan.

#include <cstdint>

#include "planner/search/search.h"

namespace frazil {

// Makespans that differ by less are taken for equal: about what a repeated profile moves by.
inline constexpr std::int64_t kNoisePpm = 10'000;

// Returns what a ranking may choose from unless its asker says otherwise: all synchronous
// schedules, unequal pipelines, depths, activation checkpointing, and cuts searched by simulated
// time; with the efforts of an answer that someone waits for. The batch, the micro-batch sizes and
// the mask are the asker's.
SearchOptions ranking_options();

// Returns the options of a search that goes on until its answer is proven, but for cuts, and that
// looks at plans of the proven space alone.
SearchOptions without_efforts(SearchOptions options);

// Searches, and puts the simplest plan within the noise first (planner/prediction/simplicity.h).
// For that it asks once more for gpipe and 1f1b alone, where the options have them and no plan as
// simple is among the fastest. With a noise of 0 the fastest plan is first.
Ranking rank_plans(PlanSearch& search, const SearchOptions& options, std::int64_t noise_ppm);

}  // namespace frazil
