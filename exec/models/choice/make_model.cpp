// Makes what exec/models/choice/model_choice.h names.
#include "exec/models/choice/model_choice.h"

#include "exec/models/hugging_face_vit.h"
#include "profiles/error.h"

namespace frazil {
namespace {

ModelSpec make(const VitConfig& model) { return make_vit(model); }

}  // namespace

ModelSpec make_model(const ModelChoice& choice) {
  return std::visit([](const auto& model) { return make(model); }, choice);
}

std::vector<NamedTensor> name_weights(const ModelChoice& choice,
                                      const std::vector<const Tensors*>& parameters) {
  if (const auto* vit = std::get_if<VitConfig>(&choice)) return to_hugging_face(*vit, parameters);
  const ModelSpec model = make_model(choice);
  ENSURE(parameters.size() == model.layers.size(), "the parameters of each layer");
  std::vector<NamedTensor> weights;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const std::vector<ParameterSpec>& specs = model.layers[l].parameters;
    for (std::size_t p = 0; p < specs.size(); ++p) {
      weights.push_back({specs[p].name, parameters[l]->at(p)});
    }
  }
  return weights;
}

}  // namespace frazil
