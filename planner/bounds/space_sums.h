#pragma once
// The chain sums of every micro-batch size that a search space offers, made once.

#include <vector>

#include "planner/bounds/chain_sums.h"
#include "planner/bounds/shape.h"
#include "planner/plan/activity.h"
#include "profiles/model_profile.h"

namespace frazil {

class SpaceSums {
 public:
  // The space must outlive this.
  SpaceSums(const ModelProfile& profile, const Activity& activity, const SearchSpace& space);

  // Returns the sums of a micro-batch size; if `cached`, without the forwards of the cached prefix.
  // Requires: the space offers the size, and has such a prefix if `cached`.
  const ChainSums& of(int micro_batch_size, bool cached) const;
  const ChainSums& of(const Shape& shape) const {
    return of(shape.cell.micro_batch_size, shape.variant.cached);
  }
  // Returns the layers of each stage of one direction from the cuts.
  std::vector<LayerSpan> spans_of(const std::vector<LayerId>& cuts) const;

 private:
  const SearchSpace& space_;
  // The sums by micro-batch size; if the space has a cached prefix, all sizes follow once more with
  // it.
  std::vector<ChainSums> sums_;
};

}  // namespace frazil
