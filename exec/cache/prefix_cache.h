#pragma once
// The cache of a run's frozen prefix. It finds the outputs of the prefix for each sample
// (exec/cache/feature_cache.h) row by row, and keeps them as they come out while there is room;
// nothing makes way for another feature. For missing rows the prefix runs
// (exec/run/prefix_completion.h), from where the depth before ended if their features of that depth
// are there.
//
// In float32 the bits are those of a run without a cache as far as a layer gives a sample the same
// bits in every micro-batch of one size (exec/devices/numerics.h); `checks` finds out. The threads
// of all devices use the cache; `use` is called between two steps.

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "exec/cache/batch_sizes.h"
#include "exec/cache/cache_tally.h"
#include "exec/cache/feature_layout.h"
#include "exec/cache/prefix_counts.h"
#include "exec/cache/prefix_features.h"
#include "exec/cache/prefix_rows.h"
#include "exec/cache/read_ahead.h"
#include "exec/models/model.h"

namespace frazil {

struct PrefixCacheOptions {
  StoreLimits limits;
  FeaturePrecision precision = FeaturePrecision::kFloat32;
  // The prefix always runs, and its outputs are compared with what is cached.
  bool checks = false;
  // Augmented variants of each sample. Sample s in variant v has the number v x samples + s.
  int variants = 1;
  // Features are kept for all processes of this host that take what one of them offers.
  bool shares = false;
};

// Returns the hash of a layer's weights, which differs between layers of equal weights.
std::uint64_t hash_weights(LayerId layer, const Tensors& parameters);

class PrefixCache {
 public:
  // Makes a cache for `samples` samples. `outputs` are those of all layers for some sample. `files`
  // outlives the cache. Throws InputError if the folder for the file on disk is not there.
  PrefixCache(const ModelSpec& model, const std::vector<Tensors>& outputs, std::int64_t samples,
              const FileSystem& files, const PrefixCacheOptions& options);

  // Both as of HostRows, before anything is found or kept: with `shares`, processes of a host take
  // the offer of one of them. Without, nothing is offered.
  StoreOffer offer() const;
  void take(const StoreOffer& offer);

  // Says how many features the next `use` of other layers may keep; without a call it is all that
  // fit.
  void admit(const FeatureRoom& room) { admitted_ = room; }
  // Returns how many features these layers may keep, in force or admitted.
  FeatureRoom room_for(int depth, const std::vector<std::uint64_t>& weights) const;
  // Caches layers [0, depth) with weights of these hashes, by layer, from here on. What was made by
  // other weights is not found.
  void use(int depth, const std::vector<std::uint64_t>& weights);

  // Reads in the background what `find` will be asked for in the next step, unless `use` comes
  // before that step.
  void expect(std::vector<ReadAhead::SampleIds> micro_batches);
  // Returns what is there of these samples, on the host: each sample at the depth in force, else at
  // the depth before, else at none (0). There is one part per depth, the deepest first; each sample
  // is a row of exactly one part.
  std::vector<PrefixRows> find(std::span<const std::int64_t> samples);
  // Stores the outputs of layers [0, depth) for these samples, where depth is the one in force.
  // With `checks`, throws std::runtime_error naming a sample if other bits are cached.
  void keep(std::span<const std::int64_t> samples, const Tensors& features);

  int depth() const { return depth_; }
  Bytes bytes_per_sample() const { return bytes_per_sample(depth_); }
  Bytes bytes_per_sample(int depth) const;  // 0: nothing can be cached there
  // A sample counts as found, found at the depth before, or missed where it is asked for, not where
  // it is read ahead; one that is lost is missed as well.
  FeatureCounts counts() const;
  PrefixCounts prefix_counts() const { return {asked_, whole_, parts_}; }
  // Returns all that this cache has done and holds.
  CacheTally tally() const;
  void count_part() { ++parts_; }
  BatchSizes& batch_sizes() { return sizes_; }
  // Returns for how many samples there is room at any depth, in all or in one tier (every slot
  // takes the largest feature), and how many bytes the samples that are there take.
  std::int64_t room() const;
  std::int64_t room(FeatureTier tier) const;
  Bytes used(FeatureTier tier) const;
  std::int64_t count(FeatureTier tier) const;
  FeatureCache::Source find_source() const;
  int depth_before() const;
  TierTraffic traffic(FeatureTier tier) const;
  // Returns how many rows were compared with what is cached, and had its bits.
  std::int64_t checked() const { return checked_; }
  // Returns what has gone wrong since the last call, in sentences. The run goes on.
  std::vector<std::string> take_warnings();

 private:
  using Features = std::variant<FeatureCache, HostFeatures>;
  static Features make_features(const PrefixCacheOptions& options, const FileSystem& files,
                                std::int64_t samples, Bytes largest);
  FeatureKey key_of(int depth, const std::vector<std::uint64_t>& weights) const;
  std::vector<PrefixRows> read(std::span<const std::int64_t> samples);
  void count(const std::vector<PrefixRows>& found);
  std::string name_sample(std::int64_t number) const;
  void compare(std::span<const std::int64_t> samples, const Tensors& features);

  PrefixCacheOptions options_;
  std::int64_t samples_;  // variants not counted
  Precision computed_in_;
  std::map<int, FeatureLayout> layouts_;  // by depth, if a tensor crosses it
  Features features_;
  BatchSizes sizes_;
  int depth_ = 0;
  FeatureKey key_;  // in force
  FeatureRoom room_;
  FeatureRoom admitted_;
  std::atomic<std::int64_t> checked_{0};
  std::atomic<std::int64_t> asked_{0};
  std::atomic<std::int64_t> whole_{0};
  std::atomic<std::int64_t> parts_{0};
  std::atomic<std::int64_t> found_{0};
  std::atomic<std::int64_t> found_before_{0};
  std::atomic<std::int64_t> missed_{0};
  ReadAhead ahead_;  // last: it reads from the others
};

}  // namespace frazil
