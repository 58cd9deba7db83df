// Makes what exec/models/choice/model_choice.h names.
#include "exec/models/choice/model_choice.h"

#include "exec/models/hugging_face_vit.h"
#include "exec/models/imported/imported_model.h"
#include "exec/models/weight_names.h"

namespace frazil {
namespace {

ModelSpec make(const VitConfig& model) { return make_vit(model); }
ModelSpec make(const DecoderConfig& model) { return make_decoder(model); }
ModelSpec make(const EncoderConfig& model) { return make_encoder(model); }
ModelSpec make(const CnnConfig& model) { return make_cnn(model); }
ModelSpec make(const MlpConfig& model) { return make_mlp(model); }
ModelSpec make(const FileModel& model) { return make_imported(model.file); }

using ByLayer = std::vector<const Tensors*>;

std::vector<NamedTensor> name(const VitConfig& model, const ByLayer& parameters) {
  return to_hugging_face(model, parameters);
}

std::vector<NamedTensor> name(const FileModel& model, const ByLayer& parameters) {
  return name_weights(*model.file, parameters);
}

template <class Config>
std::vector<NamedTensor> name(const Config& model, const ByLayer& parameters) {
  return name_weights(make(model), parameters);
}

}  // namespace

ModelSpec make_model(const ModelChoice& choice) {
  return std::visit([](const auto& model) { return make(model); }, choice);
}

std::vector<NamedTensor> name_weights(const ModelChoice& choice,
                                      const std::vector<const Tensors*>& parameters) {
  return std::visit([&](const auto& model) { return name(model, parameters); }, choice);
}

}  // namespace frazil
