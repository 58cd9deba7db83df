#pragma once
// CacheConfig is "cache" of a run configuration (exec/config/run_config.h). It says whether a run
// caches the outputs of its frozen prefix, in how much memory and disk, when it fills a depth, and
// which processes read what one of them has computed.

#include <string>

#include "exec/cache/feature_cache.h"
#include "planner/transitions/feature_store.h"
#include "profiles/cluster.h"
#include "profiles/units.h"

namespace frazil {

struct CacheConfig {
  enum class Kind { kOff, kOn };
  Kind kind = Kind::kOff;
  Bytes memory{1 << 30};
  Bytes disk = {};
  std::string folder = {};
  FeaturePrecision precision = FeaturePrecision::kFloat32;
  bool check = false;
  enum class Admission { kPredicted, kAlways };
  Admission admission = Admission::kPredicted;
  // In a run over processes: one cache for those of a host, or one for each process. Memory and
  // disk are those of one cache.
  enum class SharedBy { kHost, kProcess };
  SharedBy shared_by = SharedBy::kHost;
  Link memory_link = kMemoryLink;
  Link disk_link = kDiskLink;
  bool is_on() const { return kind == Kind::kOn; }
  friend bool operator==(const CacheConfig&, const CacheConfig&) = default;
};

}  // namespace frazil
