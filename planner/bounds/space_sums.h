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

  // `cached`: without the forwards of the cached prefix. Requires: the space has one.
  const ChainSums& of(int micro_batch_size, bool cached) const;
  const ChainSums& of(const Shape& shape) const {
    return of(shape.cell.micro_batch_size, shape.variant.cached);
  }
  // The layers of each stage of one direction, from its cuts.
  std::vector<LayerSpan> spans_of(const std::vector<LayerId>& cuts) const;

 private:
  const SearchSpace& space_;
  // By micro-batch size; where the space has a cached prefix, once more with it.
  std::vector<ChainSums> sums_;
};

}  // namespace frazil
