#pragma once
// Describes where a run keeps what its frozen prefix puts out for each sample (features), and
// predicts the time to write and to read them. With S bytes per sample at the prefix's end, a step
// of n samples in m micro-batches takes
//   n x S / bandwidth + m x latency
// to move them to or from a tier, which all pipelines share. The executor reads ahead in the
// background (exec/cache/read_ahead.h) and writes where it computes (exec/run/step_data.h), so that
//   a step that reads takes   max(its work, reading)
//   a step that fills takes   max(its work, reading its source) + writing
// provided that reading keeps a step ahead, that no pipeline has a tier of its own, and that all
// pipelines wait for the one that writes.

#include <cstdint>
#include <optional>
#include <string_view>

#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

enum class FeatureTier : std::uint8_t { kMemory, kDisk };
std::string_view name_of(FeatureTier tier);  // "memory", "disk"

struct CacheTier {
  Bytes limit;  // capacity; 0: there is no such tier
  Link link;
};

// The default links: one process that copies tensors out of memory; an NVMe drive that reads
// records of one micro-batch.
inline constexpr Link kMemoryLink{Duration{0}, BytesPerSecond{8'000'000'000}};
inline constexpr Link kDiskLink{Duration{100'000}, BytesPerSecond{1'000'000'000}};

struct FeatureStore {
  std::int64_t samples = 1;  // of an epoch; each has its features
  CacheTier memory;
  CacheTier disk;

  const CacheTier& tier(FeatureTier which) const {
    return which == FeatureTier::kMemory ? memory : disk;
  }
};

// Returns the bytes per sample of what layers [0, depth) put out and later layers read. Edges from
// one layer are taken to carry the same tensors, so that the largest counts. None if no edge
// crosses that depth.
std::optional<Bytes> find_feature_bytes(const ModelProfile& profile, int depth);

// Returns the bytes that the features of all samples take at that depth (a run has slots of the
// largest). None if they exceed the tier's limit or no edge crosses that depth.
std::optional<Bytes> find_room(const FeatureStore& store, FeatureTier tier,
                               const ModelProfile& profile, int depth);

// Returns the time to read, or to write, the features of so many samples in so many micro-batches.
Duration transfer_time(const CacheTier& tier, Bytes of_sample, std::int64_t samples,
                       std::int64_t micro_batches);
// Returns the time of reading, or of writing, for one step of the plan.
Duration transfer_time(const CacheTier& tier, Bytes of_sample, const Plan& plan);

// Returns the steps of an epoch; the last may be short. Requires: at least one sample.
Step steps_per_epoch(const FeatureStore& store, int batch_size);

}  // namespace frazil
