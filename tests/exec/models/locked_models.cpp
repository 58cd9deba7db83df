#include "tests/exec/models/locked_models.h"

#include <algorithm>
#include <utility>

#include "exec/state/parameter_groups.h"
#include "profiles/error.h"

namespace frazil {

ModelSpec lock(ModelSpec model, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const bool is_known =
        std::any_of(model.layers.begin(), model.layers.end(), [&](const LayerSpec& layer) {
          return std::any_of(
              layer.parameters.begin(), layer.parameters.end(),
              [&](const ParameterSpec& parameter) { return matches(pattern, parameter.name); });
        });
    ENSURE(is_known, "a pattern matches a parameter");
  }
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
      lock(encoder_model(),
           {"bert.embeddings.*", "bert.encoder.layer.0.intermediate.*",
            "bert.encoder.layer.0.output.*", "*.query_key_value.weight", "*.LayerNorm.bias"}),
      lock(encoder_model(), {"bert.embeddings.*", "bert.encoder.layer.?.attention.*",
                             "bert.pooler.*", "classifier.*"}),
      lock(decoder_model(), {"transformer.wte.weight", "lm_head.weight", "*.mlp.c_fc.*"}),
      lock(decoder_model(), {"transformer.wpe.weight", "transformer.h.?.ln_1.*",
                             "transformer.h.?.attn.*", "transformer.ln_f.*"}),
      lock(uneven_mlp_model(), {"layers.0.*", "layers.3.*", "*.weight"}),
      lock(small_cnn_model(), {"stem*", "*.weight"})};
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].spec.name += ", locked " + std::to_string(i);
  }
  return models;
}

}  // namespace frazil
