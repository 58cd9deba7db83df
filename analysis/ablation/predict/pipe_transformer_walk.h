#pragma once
// How PipeTransformer (He et al. 2021) goes through the masks of a training: its planner's plan
// under every mask (planner/named/pipe_transformer.h), whatever the transition costs, and its cache
// by its own rule. Steps and caches then cost what they cost every other arm
// (planner/trajectory/walk_times.h).

#include <optional>
#include <vector>

#include "planner/trajectory/walk_times.h"

namespace frazil {

// The number of frozen transformer layers (L_f, which freezes blocks 0..L_f) from which the
// released code caches for ViT; for BERT it has 5.
inline constexpr int kPipeTransformerCachesFrom = 3;

// Returns the walk. A cache is filled in the epoch after a mask that freezes a deeper prefix, at
// least `caches_from` layers, and read from then on; while it fills, steps read what was cached
// before. It lies in the first tier that has room, and is not grown where none has. A prefix that
// thaws loses it. Without a store nothing is cached. Throws InfeasibleError where the planner has
// no answer, such as under a mask that is no prefix. Requires: some segment.
std::vector<HeldSegment> walk_as_pipe_transformer(Setting setting, const SearchOptions& options,
                                                  const std::vector<ForecastSegment>& segments,
                                                  const std::optional<FeatureStore>& store,
                                                  int caches_from);

}  // namespace frazil
