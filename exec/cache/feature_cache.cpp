#include "exec/cache/feature_cache.h"

#include <algorithm>
#include <utility>

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

void FeatureCache::use(const FeatureKey& key, Bytes feature) {
  Depth left;
  std::optional<Depth> left_before;  // whose records end outside the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (key == now_.key) return;
  ++uses_;
  left_before = std::exchange(before_, std::nullopt);
  left = std::exchange(now_, Depth{.key = key, .feature = feature, .records = {}});
  if (key.depth() > 0) now_.records.resize(static_cast<std::size_t>(samples_ * variants_));
  if (key.extends(left.key)) before_ = std::move(left);
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
  const auto count = static_cast<std::int64_t>(samples.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  const Depth* depth = nullptr;
  if (covers(now_, samples, variant)) {
    depth = &now_;
    counts_.found += count;
  } else if (before_ && covers(*before_, samples, variant)) {
    depth = &*before_;
    counts_.found_before += count;
  } else {
    counts_.missed += count;
    return found;
  }
  found.depth = depth->key.depth();
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
  depth.records[place].reset();
  --depth.held;
}

// A record found is compared with the index's: another may be in its place by now.
bool FeatureCache::read(const Found& found, std::size_t i, void* bytes) {
  const RecordStore::Handle& record = found.records[i];
  const bool is_given = store_->read(*record, bytes);
  RecordStore::Handle promoted;
  if (is_given) {
    if (record->tier() == StoreTier::kMemory) return true;
    promoted = store_->store_in_memory({static_cast<const char*>(bytes), record->size()});
    if (!promoted) return true;
  }
  const std::size_t place = place_of(found.samples[i], found.variant);
  const std::lock_guard<std::mutex> lock(mutex_);
  Depth* const depth = depth_of(found.depth);
  const bool is_there = depth != nullptr && depth->records[place] == record;
  if (!is_given) {
    ++counts_.lost;
    if (is_there) forget(*depth, place);
  } else if (is_there) {
    ++counts_.promoted;
    depth->records[place] = std::move(promoted);
  }
  return is_given;
}

void FeatureCache::store(std::int64_t sample, int variant, std::string_view bytes) {
  const std::size_t place = place_of(sample, variant);
  std::int64_t use = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (now_.records.empty() || now_.records[place]) return;
    ENSURE(static_cast<std::int64_t>(bytes.size()) == now_.feature.count, "a feature of its size");
    // It has served: the new one was computed from it, and takes its room.
    if (before_) forget(*before_, place);
    use = uses_;
  }
  RecordStore::Handle record = store_->store(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!record) {
    ++counts_.turned_away;
    return;
  }
  if (uses_ != use || now_.records[place]) return;
  now_.records[place] = std::move(record);
  ++now_.held;
  ++counts_.stored;
  if (now_.held == static_cast<std::int64_t>(now_.records.size())) before_.reset();
}

bool FeatureCache::holds(std::int64_t sample, int variant) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !now_.records.empty() && now_.records[place_of(sample, variant)] != nullptr;
}

bool FeatureCache::is_whole() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !now_.records.empty() && now_.held == static_cast<std::int64_t>(now_.records.size());
}

FeatureCounts FeatureCache::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace frazil
