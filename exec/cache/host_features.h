#pragma once
// Keeps the features of a run's samples for all processes of a host (exec/cache/host_rows.h): what
// one process has computed, the others read. It serves as a FeatureCache does. A sample's features
// have a row of their own by the sample's number, so that no process needs to ask another where
// they lie: the first samples in memory, the next ones on disk, the rest without room.
//
// Every process is told the same keys and rooms, between the same steps. Features of the depth
// before serve until the new ones of their samples come, which take their rows.

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "exec/cache/feature_cache.h"
#include "exec/cache/host_rows.h"

namespace frazil {

class HostFeatures {
 public:
  // Makes rows for so many samples, features of which take at most `largest` bytes. Throws and
  // warns as HostRows does.
  HostFeatures(const FileSystem& files, const StoreLimits& limits, std::int64_t samples,
               Bytes largest)
      : samples_(samples), rows_(files, largest, limits, samples) {}

  // As those of FeatureCache; there is one variant.
  void use(const FeatureKey& key, Bytes feature, const FeatureRoom& room = {});
  struct Found {
    int depth = 0;  // 0: none
    std::vector<std::int64_t> samples;
    std::size_t bytes = 0;  // of each
  };
  Found find(std::span<const std::int64_t> samples);
  bool read(const Found& found, std::size_t i, void* bytes);
  void store(std::int64_t sample, std::string_view bytes);
  bool holds(std::int64_t sample) const;

  std::int64_t count(FeatureTier tier) const;
  Bytes used(FeatureTier tier) const;  // by the features that are found
  FeatureCache::Source find_source() const;
  int depth_before() const;
  FeatureCounts counts() const;  // of this process

  HostRows& rows() { return rows_; }
  const HostRows& rows() const { return rows_; }

 private:
  struct Depth {
    FeatureKey key = {};
    std::uint64_t content = 0;  // of its rows
    Bytes feature;
    std::int64_t in_memory = 0;  // rows that it may have
    std::int64_t on_disk = 0;
    // What was counted when rows had changed so often.
    mutable std::uint64_t counted_at = ~std::uint64_t{0};
    mutable std::int64_t held_in_memory = 0;
    mutable std::int64_t held_on_disk = 0;
  };
  struct Place {
    FeatureTier tier = FeatureTier::kMemory;
    std::int64_t slot = 0;
  };
  Depth make_depth(const FeatureKey& key, Bytes feature, const FeatureRoom& room) const;
  std::optional<Place> place_in(const Depth& depth, std::int64_t sample) const;
  bool has(const Depth& depth, std::int64_t sample) const;
  bool covers(const Depth& depth, std::span<const std::int64_t> samples) const;
  void recount(const Depth& depth) const;
  std::int64_t held(const Depth& depth) const;

  std::int64_t samples_;
  HostRows rows_;
  mutable std::mutex mutex_;  // guards all below
  Depth now_;
  std::optional<Depth> before_;
  FeatureCounts counts_;
};

}  // namespace frazil
