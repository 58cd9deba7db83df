#include "exec/cache/feature_cache.h"

#include <algorithm>
#include <utility>

#include "exec/cache/depth_choice.h"
#include "profiles/error.h"

namespace frazil {

bool FeatureKey::extends(const FeatureKey& other) const {
  return precision == other.precision && other.depth() > 0 && other.depth() < depth() &&
         std::equal(other.layers.begin(), other.layers.end(), layers.begin());
}

FeatureCache::FeatureCache(const FileSystem& files, const StoreLimits& limits, std::int64_t samples,
                           int variants, Bytes largest)
    : samples_(samples),
      variants_(variants),
      store_(RecordStore::make(files, largest, limits, samples * variants)) {
  ENSURE(variants >= 1, "a sample has a variant");
}

void FeatureCache::use(const FeatureKey& key, Bytes feature, const FeatureRoom& room) {
  Depth left;
  std::optional<Depth> left_before;  // its records end outside the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (key == now_.key) return;
  ++uses_;
  left_before = std::exchange(before_, std::nullopt);
  left = std::exchange(now_, Depth{.key = key, .feature = feature, .room = room});
  if (key.depth() > 0) now_.records.resize(static_cast<std::size_t>(samples_ * variants_));
  // If nothing was stored, what was held before that serves on.
  if (left.held() == 0 && left_before && key.extends(left_before->key)) {
    before_ = std::move(left_before);
  } else if (key.extends(left.key)) {
    before_ = std::move(left);
  }
}

std::size_t FeatureCache::place_of(std::int64_t sample, int variant) const {
  ENSURE(sample >= 0 && sample < samples_ && variant >= 0 && variant < variants_,
         "a sample of the data");
  return static_cast<std::size_t>(variant * samples_ + sample);
}

bool FeatureCache::covers(const Depth& depth, std::span<const std::int64_t> samples,
                          int variant) const {
  return !depth.records.empty() &&
         std::all_of(samples.begin(), samples.end(), [&](std::int64_t sample) {
           return depth.records[place_of(sample, variant)] != nullptr;
         });
}

FeatureCache::Found FeatureCache::find(std::span<const std::int64_t> samples, int variant) {
  Found found{.samples = {samples.begin(), samples.end()}, .variant = variant, .records = {}};
  const std::lock_guard<std::mutex> lock(mutex_);
  const Depth* const depth =
      choose_depth(now_, before_, static_cast<std::int64_t>(samples.size()), counts_,
                   [&](const Depth& known) { return covers(known, samples, variant); });
  if (depth == nullptr) return found;
  found.depth = depth->key.depth();
  found.bytes = static_cast<std::size_t>(depth->feature.count);
  for (const std::int64_t sample : samples) {
    found.records.push_back(depth->records[place_of(sample, variant)]);
  }
  return found;
}

FeatureCache::Depth* FeatureCache::depth_of(int depth) {
  if (now_.key.depth() == depth) return &now_;
  return before_ && before_->key.depth() == depth ? &*before_ : nullptr;
}

void FeatureCache::forget(Depth& depth, std::size_t place) {
  if (!depth.records[place]) return;
  --depth.held_in(depth.records[place]->tier());
  depth.records[place].reset();
}

// Returns a copy in memory of a record on disk; none if its depth may have no more in memory.
RecordStore::Handle FeatureCache::promote(const RecordStore::Record& record, int depth,
                                          const void* bytes) {
  if (record.tier() == FeatureTier::kMemory) return nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Depth* const own = depth_of(depth);
    if (own == nullptr || own->in_memory >= own->room.in_memory) return nullptr;
  }
  return store_->store_in_memory({static_cast<const char*>(bytes), record.size()});
}

// A record that was found is compared with the index's: another may be in its place by now.
bool FeatureCache::read(const Found& found, std::size_t i, void* bytes) {
  const RecordStore::Handle& record = found.records[i];
  const bool is_given = store_->read(*record, bytes);
  RecordStore::Handle promoted = is_given ? promote(*record, found.depth, bytes) : nullptr;
  if (is_given && !promoted) return true;
  const std::size_t place = place_of(found.samples[i], found.variant);
  const std::lock_guard<std::mutex> lock(mutex_);
  Depth* const depth = depth_of(found.depth);
  const bool is_there = depth != nullptr && depth->records[place] == record;
  if (!is_given) ++counts_.lost;
  if (!is_there) return is_given;
  forget(*depth, place);
  if (promoted) {
    ++counts_.promoted;
    ++depth->in_memory;
    depth->records[place] = std::move(promoted);
  }
  return is_given;
}

void FeatureCache::store(std::int64_t sample, int variant, std::string_view bytes) {
  const std::size_t place = place_of(sample, variant);
  std::int64_t use = 0;
  FeatureTier tier = FeatureTier::kMemory;
  bool may_go_to_disk = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (now_.records.empty() || now_.records[place] || now_.room.is_none()) return;
    ENSURE(static_cast<std::int64_t>(bytes.size()) == now_.feature.count, "a feature of its size");
    // Features of the depth before keep their room until the new ones of their samples come: a
    // feature that is computed beside them in another thread does not take it.
    const bool has_served = before_ && before_->records[place];
    if (!now_.has_room(before_ && !has_served ? before_->held() : 0)) {
      ++counts_.turned_away;
      return;
    }
    // The feature of the depth before has served: the new one was computed from it, and takes its
    // room.
    if (has_served) forget(*before_, place);
    may_go_to_disk = now_.on_disk < now_.room.on_disk;
    if (now_.in_memory >= now_.room.in_memory) tier = FeatureTier::kDisk;
    ++now_.held_in(tier);
    use = uses_;
  }
  RecordStore::Handle record =
      tier == FeatureTier::kMemory ? store_->store_in_memory(bytes) : nullptr;
  if (!record && may_go_to_disk) record = store_->store_on_disk(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!record) ++counts_.turned_away;
  if (uses_ != use) return;
  --now_.held_in(tier);
  if (!record || now_.records[place]) return;
  ++now_.held_in(record->tier());
  now_.records[place] = std::move(record);
  ++counts_.stored;
  if (now_.held() == static_cast<std::int64_t>(now_.records.size())) before_.reset();
}

bool FeatureCache::holds(std::int64_t sample, int variant) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !now_.records.empty() && now_.records[place_of(sample, variant)] != nullptr;
}

bool FeatureCache::is_whole() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !now_.records.empty() && now_.held() == static_cast<std::int64_t>(now_.records.size());
}

std::int64_t FeatureCache::count(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tier == FeatureTier::kMemory ? now_.in_memory : now_.on_disk;
}

FeatureCache::Source FeatureCache::find_source() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_now = now_.held() > 0;
  if (!is_now && !before_) return {};
  const Depth& depth = is_now ? now_ : *before_;
  return {depth.key.depth(), depth.feature, depth.in_memory, depth.on_disk};
}

int FeatureCache::depth_before() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return before_ ? before_->key.depth() : 0;
}

FeatureCounts FeatureCache::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace frazil
