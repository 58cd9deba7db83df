#pragma once
// The cache of a run's frozen prefix: what the prefix put out for each sample (exec/cache/
// feature_cache.h), found for whole micro-batches and kept as they come out. A micro-batch of which
// some sample is missing runs the prefix, from where the depth before ended if all of it is there.
// In float32 the bits are those of a run without a cache as far as a layer gives a sample the same
// bits in every micro-batch (exec/numerics.h); `checks` finds out. Used by the threads of all
// devices; `use` between two steps.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "exec/cache/feature_layout.h"
#include "exec/cache/prefix_boundary.h"
#include "exec/cache/read_ahead.h"
#include "exec/layer_state.h"

namespace frazil {

struct PrefixCacheOptions {
  StoreLimits limits;
  FeaturePrecision precision = FeaturePrecision::kFloat32;
  // The prefix always runs, and what it puts out is compared with what is cached.
  bool checks = false;
};

class PrefixCache {
 public:
  // `outputs`: of all layers, for some sample. Of `samples` samples. `files` outlives the cache.
  // Throws InputError where the file on disk cannot be made.
  PrefixCache(const ModelSpec& model, const std::vector<Tensors>& outputs, std::int64_t samples,
              const FileSystem& files, const PrefixCacheOptions& options);

  // From now on layers [0, depth) with these states, by layer, are what is cached. What was made by
  // other weights is not found.
  void use(int depth, const std::vector<const LayerState*>& states);

  // Reads in the background what `find` will be asked for in the next step, unless `use` comes
  // before it.
  void expect(std::vector<ReadAhead::SampleIds> micro_batches);
  // What is there of all these samples, on the host: at the depth in force, else at the one before.
  PrefixFeatures find(std::span<const std::int64_t> samples);
  // What layers [0, depth) have put out for them, of the depth in force. Throws std::runtime_error
  // naming a sample where it checks and other bits are there.
  void keep(std::span<const std::int64_t> samples, const Tensors& features);

  int depth() const { return depth_; }
  Bytes bytes_per_sample() const;  // at the depth in force
  FeatureCounts counts() const { return cache_.counts(); }
  // What has gone wrong since the last call, in sentences. The run goes on.
  std::vector<std::string> take_warnings() const { return cache_.records()->take_warnings(); }

 private:
  PrefixFeatures read(std::span<const std::int64_t> samples);
  void compare(std::span<const std::int64_t> samples, const Tensors& features);

  PrefixCacheOptions options_;
  std::map<int, FeatureLayout> layouts_;  // by depth, where something crosses it
  FeatureCache cache_;
  int depth_ = 0;
  ReadAhead ahead_;  // last: it reads from the others
};

}  // namespace frazil
