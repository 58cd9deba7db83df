#include "tests/support/sample_models.h"

#include <string>

namespace frazil {

ModelProfile make_chain(int layers, Duration forward, Duration backward_input,
                        Duration backward_weight) {
  ModelProfile profile;
  profile.model = "chain";
  profile.input_bytes_per_sample = Bytes{10};
  for (int i = 0; i < layers; ++i) {
    profile.blocks.push_back("block" + std::to_string(i));
    Layer layer;
    layer.name = "layer" + std::to_string(i);
    layer.block = BlockId{i};
    layer.has_loss = i + 1 == layers;
    layer.parameters = Bytes{1000};
    layer.optimizer_state = Bytes{2000};
    for (const int size : {1, 64}) {
      layer.costs.push_back({.micro_batch_size = size,
                             .forward = forward * size,
                             .forward_frozen = forward * size,
                             .backward_input = backward_input * size,
                             .backward_weight = backward_weight * size,
                             .backward_weight_alone = backward_weight * size,
                             .stash = Bytes{100} * size});
    }
    profile.layers.push_back(layer);
    if (i > 0) {
      profile.edges.push_back({LayerId{i - 1}, LayerId{i}, EdgeKind::kGradient, {Bytes{10}}});
    }
  }
  return profile;
}

}  // namespace frazil
