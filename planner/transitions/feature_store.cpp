#include "planner/transitions/feature_store.h"

#include <algorithm>
#include <vector>

#include "profiles/error.h"

namespace frazil {

std::string_view name_of(FeatureTier tier) {
  switch (tier) {
    case FeatureTier::kMemory:
      return "memory";
    case FeatureTier::kDisk:
      return "disk";
  }
  return "memory";
}

std::optional<Bytes> find_feature_bytes(const ModelProfile& profile, int depth) {
  std::vector<Bytes> of_layer(profile.layers.size());
  bool crosses = false;
  for (const Edge& edge : profile.edges) {
    if (edge.from.value >= depth || edge.to.value < depth) continue;
    crosses = true;
    Bytes& largest = of_layer[edge.from.index()];
    largest = std::max(largest, edge.bytes(1));
  }
  if (!crosses) return std::nullopt;
  Bytes sum;
  for (const Bytes size : of_layer) sum += size;
  return sum;
}

std::optional<Bytes> find_room(const FeatureStore& store, FeatureTier tier,
                               const ModelProfile& profile, int depth) {
  const Bytes limit = store.tier(tier).limit;
  const std::optional<Bytes> of_sample = find_feature_bytes(profile, depth);
  if (!of_sample || limit.count == 0) return std::nullopt;
  if (of_sample->count > limit.count / store.samples) return std::nullopt;
  return *of_sample * store.samples;
}

Duration transfer_time(const CacheTier& tier, Bytes of_sample, std::int64_t samples,
                       std::int64_t micro_batches) {
  return of_sample * samples / tier.link.bandwidth + tier.link.latency * micro_batches;
}

Duration transfer_time(const CacheTier& tier, Bytes of_sample, const Plan& plan) {
  return transfer_time(tier, of_sample, plan.batch_size, plan.micro_batches());
}

Step steps_per_epoch(const FeatureStore& store, int batch_size) {
  ENSURE(store.samples >= 1, "an epoch of at least one sample");
  return divide_up<std::int64_t>(store.samples, batch_size);
}

}  // namespace frazil
