#pragma once
// Reports what the cache of a run's frozen prefix holds at the end of the run and what it has done.

#include <map>
#include <string>
#include <string_view>

#include "exec/cache/feature_cache.h"
#include "exec/cache/prefix_counts.h"

namespace frazil {

struct CacheReport {
  int depth = 0;  // layers [0, depth) are cached at the end
  Bytes bytes_per_sample;
  FeaturePrecision precision = FeaturePrecision::kFloat32;
  FeatureCounts counts;  // in samples
  PrefixCounts micro_batches;
  Bytes in_memory;  // taken by the features at the end, besides the memory that plans count
  Bytes on_disk;
  // Of a run over processes, what each of them has done, and how many caches that share nothing
  // there are at the end.
  std::map<int, FeatureCounts> processes = {};
  int caches = 1;
};

std::string_view name_of(FeaturePrecision precision);  // "float32", "bfloat16"
std::string name_layers(int depth);                    // "layer 0", "layers 0-4"
std::string to_text(const CacheReport& report);        // one line for people
// Returns the warning that the cache has room for the features of only some samples; empty if those
// of all fit.
std::string warn_of_room(std::int64_t room, std::int64_t samples);

}  // namespace frazil
