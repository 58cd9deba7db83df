#include "planner/partition/layer_loads.h"

#include <algorithm>

namespace frazil {
namespace {

LayerLoad load_of(const Layer& layer, const LayerActivity& active, int size) {
  const CostSample cost = cost_at(layer, size).cost;
  const bool has_backward = active.input_gradient || active.weight_gradient;
  LayerLoad load;
  if (!active.idle) load.forward = has_backward ? cost.forward : cost.forward_frozen;
  load.state = layer.parameters;
  if (has_backward) load.stash = cost.kept(active.trains);
  if (active.input_gradient) load.backward += cost.backward_input;
  if (active.weight_gradient) {
    load.backward += active.input_gradient ? cost.backward_weight : cost.backward_weight_alone;
    load.update = layer.update;
    load.state += layer.trainable() + layer.optimizer_state;
  }
  return load;
}

}  // namespace

std::vector<LayerLoad> find_layer_loads(const ModelProfile& profile, const Activity& activity,
                                        int micro_batch_size) {
  std::vector<LayerLoad> loads;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    loads.push_back(load_of(profile.layers[l], activity.layers[l], micro_batch_size));
  }
  for (const Edge& edge : profile.edges) {
    if (activity.is_idle(edge.to)) continue;
    Bytes& output = loads.at(edge.from.index()).output;
    output = std::max(output, edge.bytes(micro_batch_size));
  }
  return loads;
}

}  // namespace frazil
