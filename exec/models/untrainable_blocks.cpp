#include "exec/models/untrainable_blocks.h"

#include <algorithm>
#include <utility>

namespace frazil {

std::vector<BlockId> find_untrainable_blocks(const ModelSpec& model) {
  std::vector<bool> trains(model.blocks.size());
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.trainable) trains[layer.block.index()] = true;
    }
  }
  std::vector<BlockId> found;
  for (std::size_t b = 0; b < trains.size(); ++b) {
    if (!trains[b]) found.emplace_back(b);
  }
  return found;
}

ModelSpec evaluate_untrainable(ModelSpec model) {
  const std::vector<BlockId> blocks = find_untrainable_blocks(model);
  for (LayerSpec& layer : model.layers) {
    if (std::find(blocks.begin(), blocks.end(), layer.block) == blocks.end()) continue;
    layer.varies_in_training = false;
    if (!mixes_samples(layer, /*training=*/false)) layer.mixes_samples = SampleMixing::kNever;
    layer.forward = [plain = std::move(layer.forward)](const LayerCall& call) {
      LayerCall evaluating = call;
      evaluating.training = false;
      return plain(evaluating);
    };
  }
  return model;
}

std::string tell_untrainable(const ModelSpec& model) {
  const std::vector<BlockId> blocks = find_untrainable_blocks(model);
  if (blocks.empty()) return "";
  std::string names;
  for (const BlockId block : blocks) {
    names += (names.empty() ? "" : ", ") + std::to_string(block.value) + " (" +
             model.blocks[block.index()] + ")";
  }
  const bool is_one = blocks.size() == 1;
  return (is_one ? "block " : "blocks ") + names + (is_one ? " has" : " have") +
         " no trainable parameter and " + (is_one ? "runs" : "run") + " in evaluation mode";
}

}  // namespace frazil
