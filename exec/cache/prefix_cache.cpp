#include "exec/cache/prefix_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
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

std::uint64_t hash_weights(LayerId layer, const LayerState& state) {
  auto hash = static_cast<std::uint64_t>(layer.value);
  for (const at::Tensor& parameter : state.parameters) {
    const at::Tensor here = parameter.detach().cpu().contiguous();
    hash = hash_bytes(here.const_data_ptr(), here.nbytes(), hash);
  }
  return hash;
}

// As it comes back from the cache.
at::Tensor round(const at::Tensor& tensor, FeaturePrecision precision) {
  const at::Tensor here = tensor.detach().cpu();
  const bool narrows =
      precision == FeaturePrecision::kBfloat16 && tensor.scalar_type() == at::kFloat;
  return (narrows ? here.to(at::kBFloat16).to(at::kFloat) : here).contiguous();
}

}  // namespace

PrefixCache::PrefixCache(const ModelSpec& model, const std::vector<Tensors>& outputs,
                         std::int64_t samples, const FileSystem& files,
                         const PrefixCacheOptions& options)
    : options_(options),
      layouts_(find_layouts(model, outputs, options.precision)),
      cache_(files, options.limits, samples, /*variants=*/1, find_largest(layouts_)),
      ahead_([this](const ReadAhead::SampleIds& ids) { return read(ids); }) {}

void PrefixCache::use(int depth, const std::vector<const LayerState*>& states) {
  ahead_.forget();
  const auto layout = layouts_.find(depth);
  depth_ = layout == layouts_.end() ? 0 : depth;
  FeatureKey key{.layers = {}, .precision = options_.precision};
  for (int l = 0; l < depth_; ++l) {
    key.layers.push_back(hash_weights(LayerId{l}, *states.at(static_cast<std::size_t>(l))));
  }
  cache_.use(key, depth_ == 0 ? Bytes{} : layout->second.feature());
}

Bytes PrefixCache::bytes_per_sample() const {
  return depth_ == 0 ? Bytes{} : layouts_.at(depth_).feature();
}

void PrefixCache::expect(std::vector<ReadAhead::SampleIds> micro_batches) {
  if (depth_ > 0 && !options_.checks) ahead_.expect(std::move(micro_batches));
}

PrefixFeatures PrefixCache::find(std::span<const std::int64_t> samples) {
  if (depth_ == 0 || options_.checks) return {};
  std::optional<PrefixFeatures> ahead = ahead_.take(samples);
  return ahead ? *std::move(ahead) : read(samples);
}

PrefixFeatures PrefixCache::read(std::span<const std::int64_t> samples) {
  const FeatureCache::Found found = cache_.find(samples, /*variant=*/0);
  if (found.depth == 0) return {};
  Tensors tensors = layouts_.at(found.depth).read(cache_, found);
  if (tensors.empty()) return {};  // lost: it runs again
  return {found.depth, std::move(tensors)};
}

void PrefixCache::keep(std::span<const std::int64_t> samples, const Tensors& features) {
  if (depth_ == 0) return;
  if (options_.checks) compare(samples, features);
  layouts_.at(depth_).store(cache_, samples, /*variant=*/0, features);
}

void PrefixCache::compare(std::span<const std::int64_t> samples, const Tensors& features) {
  const PrefixFeatures cached = read(samples);
  if (cached.depth != depth_) return;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const at::Tensor computed = round(features[i], options_.precision);
    const auto* const here = static_cast<const char*>(computed.const_data_ptr());
    const auto* const there = static_cast<const char*>(cached.tensors[i].const_data_ptr());
    const std::size_t row = computed.nbytes() / samples.size();
    for (std::size_t s = 0; s < samples.size(); ++s) {
      if (std::memcmp(here + s * row, there + s * row, row) == 0) continue;
      throw std::runtime_error("what is cached of layers 0-" + std::to_string(depth_ - 1) +
                               " for sample " + std::to_string(samples[s]) +
                               " has other bits than what they compute now");
    }
  }
}

}  // namespace frazil
