#include "exec/cache/feature_layout.h"

#include <ATen/ATen.h>

#include <cstring>
#include <string>

#include "profiles/error.h"

namespace frazil {
namespace {

at::ScalarType stored_type(at::ScalarType type, FeaturePrecision precision) {
  const bool narrows = type == at::kFloat && precision == FeaturePrecision::kBfloat16;
  return narrows ? at::kBFloat16 : type;
}

}  // namespace

FeatureLayout::FeatureLayout(const Tensors& tensors, FeaturePrecision precision) {
  for (const at::Tensor& tensor : tensors) {
    ENSURE(tensor.dim() >= 1, "dimension 0 counts samples");
    Part part{.type = tensor.scalar_type(),
              .stored = stored_type(tensor.scalar_type(), precision),
              .sizes = tensor.sizes().slice(1).vec()};
    part.bytes = at::elementSize(part.stored);
    for (const std::int64_t size : part.sizes) part.bytes *= static_cast<std::size_t>(size);
    bytes_ += Bytes{static_cast<std::int64_t>(part.bytes)};
    parts_.push_back(std::move(part));
  }
}

template <class Holds, class Store>
void FeatureLayout::store_rows(std::span<const std::int64_t> samples, const Tensors& tensors,
                               const Holds& holds, const Store& store) const {
  ENSURE(tensors.size() == parts_.size(), "the tensors of the layout");
  Tensors kept;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    ENSURE(tensors[i].size(0) == static_cast<std::int64_t>(samples.size()),
           "a row for each sample");
    kept.push_back(tensors[i].detach().cpu().to(parts_[i].stored).contiguous());
  }
  std::string record(static_cast<std::size_t>(bytes_.count), '\0');
  for (std::size_t row = 0; row < samples.size(); ++row) {
    if (holds(samples[row])) continue;
    char* next = record.data();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const auto* const bytes = static_cast<const char*>(kept[i].const_data_ptr());
      std::memcpy(next, bytes + row * parts_[i].bytes, parts_[i].bytes);
      next += parts_[i].bytes;
    }
    store(samples[row], record);
  }
}

void FeatureLayout::store(FeatureCache& cache, std::span<const std::int64_t> samples, int variant,
                          const Tensors& tensors) const {
  store_rows(
      samples, tensors, [&](std::int64_t sample) { return cache.holds(sample, variant); },
      [&](std::int64_t sample, const std::string& record) {
        cache.store(sample, variant, record);
      });
}

void FeatureLayout::store(HostFeatures& features, std::span<const std::int64_t> samples,
                          const Tensors& tensors) const {
  store_rows(
      samples, tensors, [&](std::int64_t sample) { return features.holds(sample); },
      [&](std::int64_t sample, const std::string& record) { features.store(sample, record); });
}

template <class Features, class Found>
Tensors FeatureLayout::read_rows(Features& features, const Found& found) const {
  Tensors tensors;
  for (const Part& part : parts_) {
    std::vector<std::int64_t> sizes{static_cast<std::int64_t>(found.samples.size())};
    sizes.insert(sizes.end(), part.sizes.begin(), part.sizes.end());
    tensors.push_back(at::empty(sizes, part.stored));
  }
  std::string record(static_cast<std::size_t>(bytes_.count), '\0');
  ENSURE(found.bytes == record.size(), "features of the layout's depth");
  for (std::size_t row = 0; row < found.samples.size(); ++row) {
    // A single tensor is read straight to where it is wanted.
    void* const into = parts_.size() == 1 ? static_cast<char*>(tensors[0].mutable_data_ptr()) +
                                                row * parts_[0].bytes
                                          : record.data();
    if (!features.read(found, row, into)) return {};
    if (parts_.size() == 1) continue;
    const char* next = record.data();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      auto* const bytes = static_cast<char*>(tensors[i].mutable_data_ptr());
      std::memcpy(bytes + row * parts_[i].bytes, next, parts_[i].bytes);
      next += parts_[i].bytes;
    }
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) tensors[i] = tensors[i].to(parts_[i].type);
  return tensors;
}

Tensors FeatureLayout::read(FeatureCache& cache, const FeatureCache::Found& found) const {
  return read_rows(cache, found);
}

Tensors FeatureLayout::read(HostFeatures& features, const HostFeatures::Found& found) const {
  return read_rows(features, found);
}

}  // namespace frazil
