#include "exec/cache/cache_tally.h"

#include <algorithm>

namespace frazil {
namespace {

// Features of the deepest depth that some process holds are those to go on from.
void add_source(FeatureCache::Source& all, const FeatureCache::Source& one) {
  if (one.depth < all.depth || one.depth == 0) return;
  if (one.depth > all.depth) all = {one.depth, one.feature, 0, 0};
  all.in_memory += one.in_memory;
  all.on_disk += one.on_disk;
}

void add_held(CacheTally& all, const CacheTally& one) {
  add_source(all.source, one.source);
  all.depth_before = std::max(all.depth_before, one.depth_before);
  all.in_memory += one.in_memory;
  all.on_disk += one.on_disk;
  all.used_in_memory += one.used_in_memory;
  all.used_on_disk += one.used_on_disk;
}

}  // namespace

void add_done(CacheTally& all, const CacheTally& one) {
  all.counts += one.counts;
  all.micro_batches.asked += one.micro_batches.asked;
  all.micro_batches.whole += one.micro_batches.whole;
  all.micro_batches.parts += one.micro_batches.parts;
  all.checked += one.checked;
  all.memory += one.memory;
  all.disk += one.disk;
}

FeatureCounts& operator+=(FeatureCounts& all, const FeatureCounts& more) {
  all.stored += more.stored;
  all.found += more.found;
  all.found_before += more.found_before;
  all.missed += more.missed;
  all.promoted += more.promoted;
  all.lost += more.lost;
  all.turned_away += more.turned_away;
  return all;
}

// Of processes that share rows, the one that has told of most knows best: the others may have
// counted before it stored its last row.
CacheTally join_tallies(const std::map<int, CacheTally>& tallies, const std::set<int>& there) {
  CacheTally all;
  std::map<std::uint64_t, const CacheTally*> stores;
  for (const auto& [process, tally] : tallies) {
    add_done(all, tally);
    if (!there.contains(process)) continue;
    const CacheTally*& best = stores[tally.store];
    const bool is_more =
        best == nullptr || tally.in_memory + tally.on_disk > best->in_memory + best->on_disk;
    if (is_more) best = &tally;
  }
  for (const auto& [store, tally] : stores) add_held(all, *tally);
  return all;
}

int count_stores(const std::map<int, CacheTally>& tallies, const std::set<int>& there) {
  std::set<std::uint64_t> stores;
  for (const auto& [process, tally] : tallies) {
    if (there.contains(process)) stores.insert(tally.store);
  }
  return std::max(1, static_cast<int>(stores.size()));
}

}  // namespace frazil
