#include "tests/exec/models/locked_models.h"

#include <algorithm>
#include <utility>

#include "exec/state/parameter_groups.h"

namespace frazil {

ModelSpec lock(ModelSpec model, const std::vector<std::string>& patterns) {
  for (LayerSpec& layer : model.layers) {
    for (ParameterSpec& parameter : layer.parameters) {
      parameter.trainable = std::none_of(
          patterns.begin(), patterns.end(),
          [&](const std::string& pattern) { return matches(pattern, parameter.name); });
    }
  }
  return model;
}

TestModel lock(TestModel model, const std::vector<std::string>& patterns) {
  model.spec = lock(std::move(model.spec), patterns);
  return model;
}

std::vector<TestModel> locked_models() {
  std::vector<TestModel> models{
      lock(encoder_model(), {"embeddings.*", "layer.0.mlp.*", "*.qkv.weight", "*.norm.bias"}),
      lock(encoder_model(), {"embeddings.*", "layer.?.attention.*", "pooler.*", "classifier.*"}),
      lock(decoder_model(), {"tokens.weight", "logits.weight", "*.up.*"}),
      lock(decoder_model(), {"positions.weight", "block.?.attention.*", "norm.*"}),
      lock(uneven_mlp_model(), {"layer.0.*", "layer.3.*", "*.weight"}),
      lock(small_cnn_model(), {"stem*", "*.weight"})};
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].spec.name += ", locked " + std::to_string(i);
  }
  return models;
}

}  // namespace frazil
