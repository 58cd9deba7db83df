#pragma once
// What the cache of a run's frozen prefix holds and has done.

#include <string>
#include <string_view>

#include "exec/cache/feature_cache.h"
#include "exec/cache/prefix_counts.h"

namespace frazil {

struct CacheReport {
  int depth = 0;  // layers [0, depth) are cached at the end
  Bytes bytes_per_sample;
  FeaturePrecision precision = FeaturePrecision::kFloat32;
  FeatureCounts counts;  // of samples
  PrefixCounts micro_batches;
  Bytes in_memory;  // that the features take at the end, beside what plans count
  Bytes on_disk;
};

std::string_view name_of(FeaturePrecision precision);  // "float32", "bfloat16"
std::string name_layers(int depth);                    // "layer 0", "layers 0-4"
std::string to_text(const CacheReport& report);        // one line for people
// That features of some samples alone fit; empty where all do.
std::string warn_of_room(std::int64_t room, std::int64_t samples);

}  // namespace frazil
