#include "exec/cache/prefix_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "exec/disk/hashes.h"
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
      cache_(files, options.limits, samples * options.variants, /*variants=*/1,
             find_largest(layouts_)),
      sizes_(options.precision == FeaturePrecision::kFloat32),
      ahead_([this](const ReadAhead::SampleIds& ids) { return read(ids); },
             options.limits.disk.count > 0 ? ReadAhead::kReadersOfDisk : 1) {}

void PrefixCache::use(int depth, const std::vector<std::uint64_t>& weights) {
  ahead_.forget();
  const auto layout = layouts_.find(depth);
  depth_ = layout == layouts_.end() ? 0 : depth;
  FeatureKey key{.layers = {}, .precision = options_.precision};
  for (int l = 0; l < depth_; ++l) {
    const std::uint64_t hash = weights.at(static_cast<std::size_t>(l));
    key.layers.push_back(hash_bytes(&hash, sizeof hash, static_cast<std::uint64_t>(computed_in_)));
  }
  cache_.use(key, depth_ == 0 ? Bytes{} : layout->second.feature(), std::exchange(admitted_, {}));
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
  return cache_.records()->count(FeatureTier::kMemory) +
         cache_.records()->count(FeatureTier::kDisk);
}

std::vector<PrefixRows> PrefixCache::find(std::span<const std::int64_t> samples) {
  ++asked_;
  if (depth_ == 0 || options_.checks) return {{.depth = 0, .rows = count_rows(samples.size())}};
  std::optional<std::vector<PrefixRows>> ahead = ahead_.take(samples);
  std::vector<PrefixRows> found = ahead ? *std::move(ahead) : read(samples);
  if (found.size() == 1 && found.front().depth == depth_) ++whole_;
  return found;
}

std::vector<PrefixRows> PrefixCache::read(std::span<const std::int64_t> samples) {
  struct Part {
    PrefixRows rows;
    FeatureCache::Found found;
  };
  std::map<int, Part, std::greater<>> parts;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    FeatureCache::Found one = cache_.find(samples.subspan(i, 1), /*variant=*/0);
    Part& part = parts[one.depth];
    part.rows.rows.push_back(static_cast<std::int64_t>(i));
    if (one.depth == 0) continue;
    part.found.depth = one.depth;
    part.found.samples.push_back(samples[i]);
    part.found.records.push_back(std::move(one.records.front()));
  }
  std::vector<PrefixRows> found;
  std::vector<std::int64_t> missing;
  for (auto& [depth, part] : parts) {
    if (depth > 0) part.rows.tensors = layouts_.at(depth).read(cache_, part.found);
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

void PrefixCache::keep(std::span<const std::int64_t> samples, const Tensors& features) {
  if (depth_ == 0) return;
  if (options_.checks) compare(samples, features);
  layouts_.at(depth_).store(cache_, samples, /*variant=*/0, features);
}

std::string PrefixCache::name_sample(std::int64_t number) const {
  if (options_.variants == 1) return std::to_string(number);
  return std::to_string(number % samples_) + " in variant " + std::to_string(number / samples_);
}

void PrefixCache::compare(std::span<const std::int64_t> samples, const Tensors& features) {
  for (const PrefixRows& cached : read(samples)) {
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
