#include "planner/bounds/search_options.h"

#include <algorithm>

namespace frazil {

std::vector<int> measured_sizes(const ModelProfile& profile, int batch_size) {
  int smallest = 1;
  int largest = batch_size;
  for (const Layer& layer : profile.layers) {
    smallest = std::max(smallest, layer.costs.front().micro_batch_size);
    largest = std::min(largest, layer.costs.back().micro_batch_size);
  }
  std::vector<int> sizes;
  for (int size = 1; size <= largest && size <= batch_size; size *= 2) {
    if (size >= smallest) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(std::min(smallest, batch_size));
  return sizes;
}

}  // namespace frazil
