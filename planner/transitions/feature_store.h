#pragma once
// Where a run keeps what its frozen prefix puts out for each sample, and what it takes to put it
// there and to get it back. With S bytes of a sample at the prefix's end, a step of n samples in m
// micro-batches moves
//   n x S / bandwidth + m x latency
// to or from a tier, which all pipelines share. The executor reads ahead in the background
// (exec/cache/read_ahead.h) and writes where it computes (exec/run/step_data.h), so that
//   a step that reads takes   max(its work, reading)
//   a step that fills takes   max(its work, reading what it goes on from) + writing
// which holds where reading keeps a step ahead, no pipeline has a tier of its own, and all of them
// wait for the one that writes.

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
  Bytes limit;  // 0: there is none
  Link link;
};

// Where nothing else is declared: one process that copies tensors out of memory; an NVMe drive that
// reads records of a micro-batch.
inline constexpr Link kMemoryLink{Duration{0}, BytesPerSecond{8'000'000'000}};
inline constexpr Link kDiskLink{Duration{100'000}, BytesPerSecond{1'000'000'000}};

struct FeatureStore {
  std::int64_t samples = 1;  // of an epoch, each with its features
  CacheTier memory;
  CacheTier disk;

  const CacheTier& tier(FeatureTier which) const {
    return which == FeatureTier::kMemory ? memory : disk;
  }
};

// Of a sample: what layers [0, depth) put out as far as later layers read it. Edges from one layer
// are taken to carry the same tensors, so the largest counts. None where nothing crosses.
std::optional<Bytes> find_feature_bytes(const ModelProfile& profile, int depth);

// Of all samples at that depth (a run has slots of the largest); none over its limit or uncrossed.
std::optional<Bytes> find_room(const FeatureStore& store, FeatureTier tier,
                               const ModelProfile& profile, int depth);

// What it takes to read or to write those of so many samples in so many micro-batches.
Duration transfer_time(const CacheTier& tier, Bytes of_sample, std::int64_t samples,
                       std::int64_t micro_batches);
// The same of a step of the plan.
Duration transfer_time(const CacheTier& tier, Bytes of_sample, const Plan& plan);

// Steps of an epoch; the last may be short.
Step steps_per_epoch(const FeatureStore& store, int batch_size);

}  // namespace frazil
