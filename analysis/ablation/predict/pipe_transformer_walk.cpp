#include "analysis/ablation/predict/pipe_transformer_walk.h"

#include <algorithm>
#include <utility>

#include "analysis/ablation/arm_plans.h"
#include "planner/trajectory/step_times.h"
#include "planner/trajectory/trajectory_candidates.h"

namespace frazil {
namespace {

std::optional<HeldFeatures> find_features(const FeatureStore& store, const ModelProfile& profile,
                                          int depth) {
  for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
    if (find_room(store, tier, profile, depth)) return HeldFeatures{depth, tier};
  }
  return std::nullopt;
}

// Returns how many layers the plan can cache: those of the frozen prefix that are in the plan's
// stage of frozen blocks. Layers without parameters behind the frozen blocks are in the next.
int find_depth(const Plan& plan, const FreezeMask& mask, const ModelProfile& profile) {
  const int prefix = count_frozen_prefix(profile, find_activity(profile, mask));
  return std::min(prefix, count_first_layers(plan, static_cast<int>(profile.layers.size())));
}

// Returns what is cached in a segment; `before` is what was at the end of the one before, and
// `prefix` what the plan can cache.
HeldCache choose_cache(HeldCache before, int prefix, const FreezeMask& mask,
                       const ModelProfile& profile, const FeatureStore& store, Step epoch,
                       int caches_from) {
  if (before.features.depth > prefix) before = {};
  const int frozen_layers = mask.frozen_count() - 1;  // block 0 is the embedding
  if (frozen_layers < caches_from || prefix == before.features.depth) return before;
  const auto features = find_features(store, profile, prefix);
  if (!features) return before;
  const HeldFeatures source = before.left > 0 ? before.source : before.features;
  return {*features, source, epoch};
}

}  // namespace

std::vector<HeldSegment> walk_as_pipe_transformer(Setting setting, const SearchOptions& options,
                                                  const std::vector<ForecastSegment>& segments,
                                                  const std::optional<FeatureStore>& store,
                                                  int caches_from) {
  std::vector<HeldSegment> walk;
  SearchOptions under = options;
  HeldCache cache;
  for (const ForecastSegment& segment : segments) {
    under.mask = segment.mask;
    Plan plan = as_candidate(make_pipe_transformer_step_plan(setting, under));
    if (store) {
      cache = choose_cache(cache, find_depth(plan, segment.mask, setting.profile()), segment.mask,
                           setting.profile(), *store, steps_per_epoch(*store, options.batch_size),
                           caches_from);
    }
    walk.push_back({std::move(plan), segment, cache});
    cache = after(cache, segment.steps);
  }
  return walk;
}

}  // namespace frazil
