#pragma once
// Packs the tensors that cross a depth of a model into one record per sample: each tensor's bytes
// of that sample one after the other, floats in the precision asked for. In float32 every bit comes
// back.

#include <ATen/core/Tensor.h>

#include <vector>

#include "exec/cache/feature_cache.h"
#include "exec/cache/host_features.h"
#include "exec/tensors/tensors.h"

namespace frazil {

class FeatureLayout {
 public:
  // Takes the layout of these tensors, whose dimension 0 counts samples.
  FeatureLayout(const Tensors& tensors, FeaturePrecision precision);

  Bytes feature() const { return bytes_; }
  // Stores row i of `tensors` as the feature of samples[i].
  void store(FeatureCache& cache, std::span<const std::int64_t> samples, int variant,
             const Tensors& tensors) const;
  void store(HostFeatures& features, std::span<const std::int64_t> samples,
             const Tensors& tensors) const;
  // Reads what was found, which must be of this layout's depth. Returns nothing if a feature is
  // lost.
  Tensors read(FeatureCache& cache, const FeatureCache::Found& found) const;
  Tensors read(HostFeatures& features, const HostFeatures::Found& found) const;

 private:
  struct Part {
    at::ScalarType type;    // of the tensor
    at::ScalarType stored;  // as it is kept
    std::vector<std::int64_t> sizes;
    std::size_t bytes = 0;  // of a sample as it is stored
  };
  template <class Holds, class Store>
  void store_rows(std::span<const std::int64_t> samples, const Tensors& tensors, const Holds& holds,
                  const Store& store) const;
  template <class Features, class Found>
  Tensors read_rows(Features& features, const Found& found) const;

  std::vector<Part> parts_;
  Bytes bytes_;
};

}  // namespace frazil
