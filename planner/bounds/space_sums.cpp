#include "planner/bounds/space_sums.h"

#include <algorithm>

namespace frazil {

SpaceSums::SpaceSums(const ModelProfile& profile, const Activity& activity,
                     const SearchSpace& space)
    : space_(space) {
  const std::vector<int>& sizes = space.options.micro_batch_sizes;
  sums_.reserve(2 * sizes.size());
  for (const int size : sizes) sums_.emplace_back(profile, activity, size);
  if (space.cached == 0) return;
  Activity caching = activity;
  caching.cached = space.cached;
  for (const int size : sizes) sums_.emplace_back(profile, caching, size);
}

const ChainSums& SpaceSums::of(int micro_batch_size, bool cached) const {
  const auto& sizes = space_.options.micro_batch_sizes;
  const auto place = std::find(sizes.begin(), sizes.end(), micro_batch_size);
  return sums_[static_cast<std::size_t>(place - sizes.begin()) + (cached ? sizes.size() : 0)];
}

std::vector<LayerSpan> SpaceSums::spans_of(const std::vector<LayerId>& cuts) const {
  std::vector<LayerSpan> spans;
  int first = 0;
  for (const LayerId cut : cuts) {
    spans.push_back({first, cut.value});
    first = cut.value;
  }
  spans.push_back({first, space_.layers});
  return spans;
}

}  // namespace frazil
