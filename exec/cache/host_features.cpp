#include "exec/cache/host_features.h"

#include <algorithm>
#include <utility>

#include "exec/cache/depth_choice.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The room is a part of it: it says which row a slot is.
std::uint64_t hash_content(const FeatureKey& key, std::int64_t in_memory, std::int64_t on_disk) {
  const std::array<std::int64_t, 3> rest{static_cast<std::int64_t>(key.precision), in_memory,
                                         on_disk};
  return hash_bytes(key.layers.data(), key.layers.size() * sizeof(std::uint64_t),
                    hash_bytes(rest.data(), sizeof rest));
}

}  // namespace

HostFeatures::Depth HostFeatures::make_depth(const FeatureKey& key, Bytes feature,
                                             const FeatureRoom& room) const {
  Depth depth{.key = key, .content = 0, .feature = feature};
  if (key.depth() == 0) return depth;
  depth.in_memory = std::min(room.in_memory, rows_.slots(FeatureTier::kMemory));
  depth.on_disk = std::min(room.on_disk, rows_.slots(FeatureTier::kDisk));
  depth.content = hash_content(key, depth.in_memory, depth.on_disk);
  return depth;
}

// All processes do so between two steps, and find the same rows.
void HostFeatures::use(const FeatureKey& key, Bytes feature, const FeatureRoom& room) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (key == now_.key) return;
  std::optional<Depth> left_before = std::exchange(before_, std::nullopt);
  Depth left = std::exchange(now_, make_depth(key, feature, room));
  if (held(left) == 0 && left_before && key.extends(left_before->key)) {
    before_ = std::move(left_before);
  } else if (key.extends(left.key)) {
    before_ = std::move(left);
  }
  if (before_ && held(*before_) == 0) before_.reset();
  if (rows_.is_own() && !before_ && held(now_) == 0) rows_.clear();
}

std::optional<HostFeatures::Place> HostFeatures::place_in(const Depth& depth,
                                                          std::int64_t sample) const {
  ENSURE(sample >= 0 && sample < samples_, "a sample of the data");
  if (sample < depth.in_memory) return Place{FeatureTier::kMemory, sample};
  const std::int64_t next = sample - depth.in_memory;
  if (next < depth.on_disk) return Place{FeatureTier::kDisk, next};
  return std::nullopt;
}

bool HostFeatures::has(const Depth& depth, std::int64_t sample) const {
  const std::optional<Place> place = place_in(depth, sample);
  return place && rows_.holds(place->tier, place->slot, depth.content);
}

bool HostFeatures::covers(const Depth& depth, std::span<const std::int64_t> samples) const {
  return depth.key.depth() > 0 &&
         std::all_of(samples.begin(), samples.end(),
                     [&](std::int64_t sample) { return has(depth, sample); });
}

HostFeatures::Found HostFeatures::find(std::span<const std::int64_t> samples) {
  Found found{.samples = {samples.begin(), samples.end()}};
  const std::lock_guard<std::mutex> lock(mutex_);
  const Depth* const depth =
      choose_depth(now_, before_, static_cast<std::int64_t>(samples.size()), counts_,
                   [&](const Depth& known) { return covers(known, samples); });
  if (depth == nullptr) return found;
  found.depth = depth->key.depth();
  found.bytes = static_cast<std::size_t>(depth->feature.count);
  return found;
}

bool HostFeatures::read(const Found& found, std::size_t i, void* bytes) {
  std::optional<Place> place;
  std::uint64_t content = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool is_now = now_.key.depth() == found.depth;
    if (is_now || (before_ && before_->key.depth() == found.depth)) {
      const Depth& depth = is_now ? now_ : *before_;
      place = place_in(depth, found.samples[i]);
      content = depth.content;
    }
  }
  if (place && rows_.read(place->tier, place->slot, content, bytes, found.bytes)) return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_.lost;
  return false;
}

void HostFeatures::store(std::int64_t sample, std::string_view bytes) {
  std::optional<Place> place;
  std::uint64_t content = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (now_.key.depth() == 0 || now_.in_memory + now_.on_disk == 0) return;
    ENSURE(static_cast<std::int64_t>(bytes.size()) == now_.feature.count, "a feature of its size");
    place = place_in(now_, sample);
    content = now_.content;
  }
  const bool is_stored = place && rows_.write(place->tier, place->slot, content, bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  ++(is_stored ? counts_.stored : counts_.turned_away);
}

bool HostFeatures::holds(std::int64_t sample) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return now_.key.depth() > 0 && has(now_, sample);
}

void HostFeatures::recount(const Depth& depth) const {
  const std::uint64_t changes = rows_.changes();
  if (depth.counted_at == changes) return;
  depth.held_in_memory = rows_.count(FeatureTier::kMemory, depth.in_memory, depth.content);
  depth.held_on_disk = rows_.count(FeatureTier::kDisk, depth.on_disk, depth.content);
  depth.counted_at = changes;
}

std::int64_t HostFeatures::held(const Depth& depth) const {
  if (depth.key.depth() == 0) return 0;
  recount(depth);
  return depth.held_in_memory + depth.held_on_disk;
}

std::int64_t HostFeatures::count(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held(now_) == 0) return 0;
  return tier == FeatureTier::kMemory ? now_.held_in_memory : now_.held_on_disk;
}

Bytes HostFeatures::used(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::int64_t rows = 0;
  for (const Depth* const depth : {&now_, before_ ? &*before_ : nullptr}) {
    if (depth == nullptr || held(*depth) == 0) continue;
    rows += tier == FeatureTier::kMemory ? depth->held_in_memory : depth->held_on_disk;
  }
  return rows_.stride() * rows;
}

FeatureCache::Source HostFeatures::find_source() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_now = held(now_) > 0;
  if (!is_now && (!before_ || held(*before_) == 0)) return {};
  const Depth& depth = is_now ? now_ : *before_;
  return {depth.key.depth(), depth.feature, depth.held_in_memory, depth.held_on_disk};
}

int HostFeatures::depth_before() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool serves = before_ && held(now_) < samples_ && held(*before_) > 0;
  return serves ? before_->key.depth() : 0;
}

FeatureCounts HostFeatures::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace frazil
