#include "exec/cache/prefix_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "exec/disk/hashes.h"
#include "exec/models/boundary.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Tensors take_boundary(const ModelSpec& model, int depth, const std::vector<Tensors>& outputs) {
  Tensors tensors;
  for (const LayerOutput& crossing : find_boundary(model, depth)) {
    tensors.push_back(outputs.at(crossing.layer.index()).at(crossing.output));
  }
  return tensors;
}

std::map<int, FeatureLayout> find_layouts(const ModelSpec& model,
                                          const std::vector<Tensors>& outputs,
                                          FeaturePrecision precision) {
  std::map<int, FeatureLayout> layouts;
  for (int depth = 1; depth < static_cast<int>(model.layers.size()); ++depth) {
    const Tensors tensors = take_boundary(model, depth, outputs);
    if (!tensors.empty()) layouts.emplace(depth, FeatureLayout(tensors, precision));
  }
  return layouts;
}

Bytes find_largest(const std::map<int, FeatureLayout>& layouts) {
  Bytes largest;
  for (const auto& [depth, layout] : layouts) largest = std::max(largest, layout.feature());
  return largest;
}

std::vector<std::int64_t> count_rows(std::size_t count) {
  std::vector<std::int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Both forms of a cache are asked alike.
FeatureCache::Found find_in(FeatureCache& features, std::span<const std::int64_t> samples) {
  return features.find(samples, /*variant=*/0);
}
HostFeatures::Found find_in(HostFeatures& features, std::span<const std::int64_t> samples) {
  return features.find(samples);
}

void append(FeatureCache::Found& all, FeatureCache::Found one) {
  all.depth = one.depth;
  all.bytes = one.bytes;
  all.samples.push_back(one.samples.front());
  all.records.push_back(std::move(one.records.front()));
}
void append(HostFeatures::Found& all, const HostFeatures::Found& one) {
  all.depth = one.depth;
  all.bytes = one.bytes;
  all.samples.push_back(one.samples.front());
}

const RecordStore& records_of(const FeatureCache& features) { return *features.records(); }

std::int64_t room_of(const FeatureCache& features, FeatureTier tier) {
  return records_of(features).count(tier);
}
std::int64_t room_of(const HostFeatures& features, FeatureTier tier) {
  return features.rows().slots(tier);
}

TierTraffic traffic_of(const FeatureCache& features, FeatureTier tier) {
  return records_of(features).traffic(tier);
}
TierTraffic traffic_of(const HostFeatures& features, FeatureTier tier) {
  return features.rows().traffic(tier);
}

Bytes used_of(const FeatureCache& features, FeatureTier tier) {
  return records_of(features).used(tier);
}
Bytes used_of(const HostFeatures& features, FeatureTier tier) { return features.used(tier); }

std::vector<std::string> warnings_of(FeatureCache& features) {
  return features.records()->take_warnings();
}
std::vector<std::string> warnings_of(HostFeatures& features) {
  return features.rows().take_warnings();
}

// Returns the samples' rows, those of one depth together.
template <class Features>
std::vector<PrefixRows> read_from(Features& features, const std::map<int, FeatureLayout>& layouts,
                                  std::span<const std::int64_t> samples) {
  struct Part {
    PrefixRows rows;
    typename Features::Found found;
  };
  std::map<int, Part, std::greater<>> parts;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    typename Features::Found one = find_in(features, samples.subspan(i, 1));
    Part& part = parts[one.depth];
    part.rows.rows.push_back(static_cast<std::int64_t>(i));
    if (one.depth > 0) append(part.found, std::move(one));
  }
  std::vector<PrefixRows> found;
  std::vector<std::int64_t> missing;
  for (auto& [depth, part] : parts) {
    if (depth > 0) part.rows.tensors = layouts.at(depth).read(features, part.found);
    part.rows.depth = depth;
    if (part.rows.tensors.empty()) {  // not there, or lost: it runs again
      missing.insert(missing.end(), part.rows.rows.begin(), part.rows.rows.end());
    } else {
      found.push_back(std::move(part.rows));
    }
  }
  std::sort(missing.begin(), missing.end());
  if (!missing.empty()) found.push_back({.depth = 0, .rows = std::move(missing)});
  return found;
}

// Returns a tensor as it comes back from the cache.
at::Tensor round(const at::Tensor& tensor, FeaturePrecision precision) {
  const at::Tensor here = tensor.detach().cpu();
  const bool narrows =
      precision == FeaturePrecision::kBfloat16 && tensor.scalar_type() == at::kFloat;
  return (narrows ? here.to(at::kBFloat16).to(at::kFloat) : here).contiguous();
}

}  // namespace

std::uint64_t hash_weights(LayerId layer, const Tensors& parameters) {
  auto hash = static_cast<std::uint64_t>(layer.value);
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor here = parameter.detach().cpu().contiguous();
    hash = hash_bytes(here.const_data_ptr(), here.nbytes(), hash);
  }
  return hash;
}

PrefixCache::PrefixCache(const ModelSpec& model, const std::vector<Tensors>& outputs,
                         std::int64_t samples, const FileSystem& files,
                         const PrefixCacheOptions& options)
    : options_(options),
      samples_(samples),
      computed_in_(model.precision),
      layouts_(find_layouts(model, outputs, options.precision)),
      features_(make_features(options, files, samples * options.variants, find_largest(layouts_))),
      sizes_(options.precision == FeaturePrecision::kFloat32),
      ahead_([this](const ReadAhead::SampleIds& ids) { return read(ids); },
             options.limits.disk.count > 0 ? ReadAhead::kReadersOfDisk : 1) {}

PrefixCache::Features PrefixCache::make_features(const PrefixCacheOptions& options,
                                                 const FileSystem& files, std::int64_t samples,
                                                 Bytes largest) {
  if (options.shares) {
    return Features(std::in_place_type<HostFeatures>, files, options.limits, samples, largest);
  }
  return Features(std::in_place_type<FeatureCache>, files, options.limits, samples, /*variants=*/1,
                  largest);
}

StoreOffer PrefixCache::offer() const {
  const auto* const shared = std::get_if<HostFeatures>(&features_);
  return shared == nullptr ? StoreOffer{} : shared->rows().offer();
}

void PrefixCache::take(const StoreOffer& offer) {
  ahead_.forget();
  if (auto* const shared = std::get_if<HostFeatures>(&features_)) (void)shared->rows().take(offer);
}

// At a depth that no tensor crosses there is nothing to cache.
FeatureKey PrefixCache::key_of(int depth, const std::vector<std::uint64_t>& weights) const {
  FeatureKey key{.layers = {}, .precision = options_.precision};
  if (!layouts_.contains(depth)) return key;
  for (int l = 0; l < depth; ++l) {
    const std::uint64_t hash = weights.at(static_cast<std::size_t>(l));
    key.layers.push_back(hash_bytes(&hash, sizeof hash, static_cast<std::uint64_t>(computed_in_)));
  }
  return key;
}

FeatureRoom PrefixCache::room_for(int depth, const std::vector<std::uint64_t>& weights) const {
  return key_of(depth, weights) == key_ ? room_ : admitted_;
}

void PrefixCache::use(int depth, const std::vector<std::uint64_t>& weights) {
  ahead_.forget();
  room_ = room_for(depth, weights);
  admitted_ = {};
  key_ = key_of(depth, weights);
  depth_ = key_.depth();
  std::visit([&](auto& features) { features.use(key_, bytes_per_sample(depth_), room_); },
             features_);
}

Bytes PrefixCache::bytes_per_sample(int depth) const {
  const auto layout = layouts_.find(depth);
  return layout == layouts_.end() ? Bytes{} : layout->second.feature();
}

void PrefixCache::expect(std::vector<ReadAhead::SampleIds> micro_batches) {
  if (depth_ == 0 || options_.checks) return;
  ahead_.expect(std::move(micro_batches));
}

std::int64_t PrefixCache::room() const {
  return room(FeatureTier::kMemory) + room(FeatureTier::kDisk);
}

std::int64_t PrefixCache::room(FeatureTier tier) const {
  return std::visit([tier](const auto& features) { return room_of(features, tier); }, features_);
}

Bytes PrefixCache::used(FeatureTier tier) const {
  return std::visit([tier](const auto& features) { return used_of(features, tier); }, features_);
}

std::int64_t PrefixCache::count(FeatureTier tier) const {
  return std::visit([tier](const auto& features) { return features.count(tier); }, features_);
}

FeatureCounts PrefixCache::counts() const {
  FeatureCounts counts =
      std::visit([](const auto& features) { return features.counts(); }, features_);
  counts.found = found_;
  counts.found_before = found_before_;
  counts.missed = missed_;
  return counts;
}

FeatureCache::Source PrefixCache::find_source() const {
  return std::visit([](const auto& features) { return features.find_source(); }, features_);
}

int PrefixCache::depth_before() const {
  return std::visit([](const auto& features) { return features.depth_before(); }, features_);
}

TierTraffic PrefixCache::traffic(FeatureTier tier) const {
  return std::visit([tier](const auto& features) { return traffic_of(features, tier); }, features_);
}

CacheTally PrefixCache::tally() const {
  const auto* const shared = std::get_if<HostFeatures>(&features_);
  return {.process = 0,
          .store = shared == nullptr ? 0 : shared->rows().id(),
          .counts = counts(),
          .micro_batches = prefix_counts(),
          .checked = checked_,
          .memory = traffic(FeatureTier::kMemory),
          .disk = traffic(FeatureTier::kDisk),
          .source = find_source(),
          .depth_before = depth_before(),
          .in_memory = count(FeatureTier::kMemory),
          .on_disk = count(FeatureTier::kDisk),
          .used_in_memory = used(FeatureTier::kMemory),
          .used_on_disk = used(FeatureTier::kDisk)};
}

std::vector<std::string> PrefixCache::take_warnings() {
  return std::visit([](auto& features) { return warnings_of(features); }, features_);
}

std::vector<PrefixRows> PrefixCache::find(std::span<const std::int64_t> samples) {
  ++asked_;
  if (depth_ == 0 || options_.checks) return {{.depth = 0, .rows = count_rows(samples.size())}};
  std::optional<std::vector<PrefixRows>> ahead = ahead_.take(samples);
  std::vector<PrefixRows> found = ahead ? *std::move(ahead) : read(samples);
  if (found.size() == 1 && found.front().depth == depth_) ++whole_;
  count(found);
  return found;
}

void PrefixCache::count(const std::vector<PrefixRows>& found) {
  for (const PrefixRows& part : found) {
    std::atomic<std::int64_t>& counted = part.depth == depth_ ? found_
                                         : part.depth == 0    ? missed_
                                                              : found_before_;
    counted += static_cast<std::int64_t>(part.rows.size());
  }
}

std::vector<PrefixRows> PrefixCache::read(std::span<const std::int64_t> samples) {
  return std::visit([&](auto& features) { return read_from(features, layouts_, samples); },
                    features_);
}

void PrefixCache::keep(std::span<const std::int64_t> samples, const Tensors& features) {
  if (depth_ == 0) return;
  if (options_.checks) compare(samples, features);
  const FeatureLayout& layout = layouts_.at(depth_);
  if (auto* const own = std::get_if<FeatureCache>(&features_)) {
    layout.store(*own, samples, /*variant=*/0, features);
  } else {
    layout.store(std::get<HostFeatures>(features_), samples, features);
  }
}

std::string PrefixCache::name_sample(std::int64_t number) const {
  if (options_.variants == 1) return std::to_string(number);
  return std::to_string(number % samples_) + " in variant " + std::to_string(number / samples_);
}

void PrefixCache::compare(std::span<const std::int64_t> samples, const Tensors& features) {
  const std::vector<PrefixRows> found = read(samples);
  count(found);
  for (const PrefixRows& cached : found) {
    if (cached.depth != depth_) continue;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const at::Tensor computed = round(features[i], options_.precision);
      const auto* const here = static_cast<const char*>(computed.const_data_ptr());
      const auto* there = static_cast<const char*>(cached.tensors[i].const_data_ptr());
      const std::size_t bytes = computed.nbytes() / samples.size();
      for (const std::int64_t row : cached.rows) {
        const auto s = static_cast<std::size_t>(row);
        if (std::memcmp(here + s * bytes, there, bytes) != 0) {
          throw std::runtime_error("what is cached of layers 0-" + std::to_string(depth_ - 1) +
                                   " for sample " + name_sample(samples[s]) +
                                   " has other bits than what they compute now");
        }
        there += bytes;
      }
    }
    checked_ += static_cast<std::int64_t>(cached.rows.size());
  }
}

}  // namespace frazil
