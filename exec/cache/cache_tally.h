#pragma once
// What the cache of one process has done and holds, and what the caches of all processes of a run
// come to.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "exec/cache/feature_cache.h"
#include "exec/cache/prefix_counts.h"

namespace frazil {

struct CacheTally {
  int process = 0;
  // Differs between caches that share no rows; the caches of processes that share rows hold the
  // same.
  std::uint64_t store = 0;
  // Done so far by this process.
  FeatureCounts counts = {};
  PrefixCounts micro_batches = {};
  std::int64_t checked = 0;  // rows that had the bits of what is cached
  TierTraffic memory = {};
  TierTraffic disk = {};
  // Held.
  FeatureCache::Source source = {};
  int depth_before = 0;        // 0: nothing of a depth before is there
  std::int64_t in_memory = 0;  // samples at the depth in force
  std::int64_t on_disk = 0;
  Bytes used_in_memory = {};
  Bytes used_on_disk = {};
  std::vector<std::string> warnings = {};  // of what has gone wrong since the last tally

  Duration reading() const { return memory.reading + disk.reading; }
};

// Adds what `one` has done to `all`; what is held stays.
void add_done(CacheTally& all, const CacheTally& one);

FeatureCounts& operator+=(FeatureCounts& all, const FeatureCounts& more);

// Joins what processes have told last. What those did that are there no more was done; what they
// held is gone. Rows that processes share count once.
CacheTally join_tallies(const std::map<int, CacheTally>& tallies, const std::set<int>& there);

// Returns how many caches that share no rows these processes have; at least 1.
int count_stores(const std::map<int, CacheTally>& tallies, const std::set<int>& there);

}  // namespace frazil
