#include "tests/bench/transitions/mean_profile.h"

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr Duration CostSample::*kTimes[] = {
    &CostSample::forward, &CostSample::forward_frozen, &CostSample::backward_input,
    &CostSample::backward_weight, &CostSample::backward_weight_alone};

void add_mean(CostSample& cost, const CostSample& other) {
  ENSURE(cost.micro_batch_size == other.micro_batch_size, "the same micro-batch sizes");
  for (Duration CostSample::*const time : kTimes) {
    cost.*time = (cost.*time + other.*time) / 2;
  }
}

}  // namespace

ModelProfile mean_times(const ModelProfile& first, const ModelProfile& second) {
  ENSURE(first.layers.size() == second.layers.size(), "two profiles of one model");
  ModelProfile mean = first;
  for (std::size_t l = 0; l < mean.layers.size(); ++l) {
    Layer& layer = mean.layers[l];
    const Layer& other = second.layers[l];
    ENSURE(layer.costs.size() == other.costs.size(), "the same micro-batch sizes");
    layer.update = (layer.update + other.update) / 2;
    for (std::size_t i = 0; i < layer.costs.size(); ++i) {
      add_mean(layer.costs[i], other.costs[i]);
    }
  }
  return mean;
}

}  // namespace frazil
