#include "exec/models/choice/network_choice.h"

#include "exec/models/hugging_face_vit.h"
#include "exec/models/imported/imported_model.h"
#include "exec/models/weight_names.h"
#include "profiles/json_settings.h"

namespace frazil {
namespace {

constexpr int kFirstAndHead = 2;  // blocks of a transformer besides those between

Members members_of(const VitConfig& model) {
  return {{"image", std::to_string(model.image)},     {"channels", std::to_string(model.channels)},
          {"patch", std::to_string(model.patch)},     {"dim", std::to_string(model.dim)},
          {"blocks", std::to_string(model.blocks)},   {"heads", std::to_string(model.heads)},
          {"classes", std::to_string(model.classes)}, {"dropout", number_text(model.dropout)}};
}

Members members_of(const DecoderConfig& model) {
  return {{"vocabulary", std::to_string(model.vocabulary)},
          {"tokens", std::to_string(model.tokens)},
          {"dim", std::to_string(model.dim)},
          {"blocks", std::to_string(model.blocks)},
          {"heads", std::to_string(model.heads)},
          {"expansion", std::to_string(model.expansion)},
          {"dropout", number_text(model.dropout)}};
}

Members members_of(const EncoderConfig& model) {
  return {{"vocabulary", std::to_string(model.vocabulary)},
          {"segments", std::to_string(model.segments)},
          {"tokens", std::to_string(model.tokens)},
          {"dim", std::to_string(model.dim)},
          {"blocks", std::to_string(model.blocks)},
          {"heads", std::to_string(model.heads)},
          {"expansion", std::to_string(model.expansion)},
          {"classes", std::to_string(model.classes)},
          {"dropout", number_text(model.dropout)}};
}

Members members_of(const CnnConfig& model) {
  return {{"image", std::to_string(model.image)}, {"channels", std::to_string(model.channels)},
          {"width", std::to_string(model.width)}, {"detour", std::to_string(model.detour)},
          {"units", std::to_string(model.units)}, {"classes", std::to_string(model.classes)}};
}

std::string list_text(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

Members members_of(const MlpConfig& model) {
  return {{"image", std::to_string(model.image)},
          {"channels", std::to_string(model.channels)},
          {"widths", list_text(model.widths)},
          {"classes", std::to_string(model.classes)}};
}

Members members_of(const VggConfig& model) {
  return {{"image", std::to_string(model.image)},
          {"channels", std::to_string(model.channels)},
          {"widths", list_text(model.widths)},
          {"convolutions", std::to_string(model.convolutions)},
          {"separable", model.separable ? "true" : "false"},
          {"batch_norm", model.batch_norm ? "true" : "false"},
          {"classes", std::to_string(model.classes)}};
}

Members members_of(const MobilenetShape& shape) {
  return {{"image", std::to_string(shape.image)},
          {"channels", std::to_string(shape.channels)},
          {"stem", std::to_string(shape.stem)},
          {"stem_stride", std::to_string(shape.stem_stride)},
          {"widths", list_text(shape.widths)},
          {"cells", list_text(shape.cells)},
          {"strides", list_text(shape.strides)},
          {"head", std::to_string(shape.head)},
          {"batch_norm", shape.batch_norm ? "true" : "false"},
          {"classes", std::to_string(shape.classes)}};
}

std::string operations_text(const std::vector<std::vector<CellOperation>>& operations) {
  std::string text;
  for (const std::vector<CellOperation>& stage : operations) {
    std::string names;
    for (const CellOperation operation : stage) {
      names += (names.empty() ? "" : ", ") +
               json_string(kCellOperations.at(static_cast<std::size_t>(operation)));
    }
    text += (text.empty() ? "[" : ", [") + names + "]";
  }
  return "[" + text + "]";
}

Members members_of(const MobilenetConfig& model) {
  Members members = members_of(model.shape);
  if (!model.operations.empty()) {
    members.emplace_back("operations", operations_text(model.operations));
  }
  return members;
}

Members members_of(const SupernetConfig& model) {
  Members members = members_of(model.shape);
  members.emplace_back("architecture_every", std::to_string(model.architecture_every));
  members.emplace_back("architecture_from", std::to_string(model.architecture_from));
  return members;
}

Members members_of(const FileModel& model) { return {{"path", json_string(model.path)}}; }

int blocks_of(const VitConfig& model) { return model.blocks + kFirstAndHead; }

int blocks_of(const DecoderConfig& model) { return model.blocks + kFirstAndHead; }
int blocks_of(const EncoderConfig& model) { return model.blocks + kFirstAndHead; }
int blocks_of(const CnnConfig& model) { return 4 + 2 * model.units; }
int blocks_of(const MlpConfig& model) { return static_cast<int>(model.widths.size()) + 1; }
int blocks_of(const VggConfig& model) { return static_cast<int>(model.widths.size()) + 1; }
int blocks_of(const MobilenetConfig& model) {
  return static_cast<int>(model.shape.widths.size()) + 1;
}
int blocks_of(const SupernetConfig& model) {
  return static_cast<int>(model.shape.widths.size()) + 1;
}
int blocks_of(const FileModel& model) { return static_cast<int>(model.file->graph.blocks.size()); }

SampleForm form_of(const VitConfig& model) {
  return image_form(model.channels, model.image, model.classes);
}

SampleForm form_of(const DecoderConfig& model) {
  return {.inputs = {token_form(InputMeaning::kTokens, model.tokens, model.vocabulary)},
          .labels = LabelMeaning::kNextToken,
          .label_shape = {model.tokens},
          .classes = model.vocabulary};
}

SampleForm form_of(const EncoderConfig& model) {
  return {.inputs = {token_form(InputMeaning::kTokens, model.tokens, model.vocabulary),
                     token_form(InputMeaning::kSegments, model.tokens, model.segments),
                     token_form(InputMeaning::kMask, model.tokens, 2)},
          .classes = model.classes};
}

SampleForm form_of(const CnnConfig& model) {
  return image_form(model.channels, model.image, model.classes);
}

SampleForm form_of(const MlpConfig& model) {
  return image_form(model.channels, model.image, model.classes);
}

SampleForm form_of(const VggConfig& model) {
  return image_form(model.channels, model.image, model.classes);
}

SampleForm form_of(const MobilenetConfig& model) {
  return image_form(model.shape.channels, model.shape.image, model.shape.classes);
}

SampleForm form_of(const SupernetConfig& model) {
  return image_form(model.shape.channels, model.shape.image, model.shape.classes);
}

SampleForm form_of(const FileModel& model) { return sample_form(model.file->graph); }

ModelSpec make(const VitConfig& model) { return make_vit(model); }
ModelSpec make(const DecoderConfig& model) { return make_decoder(model); }
ModelSpec make(const EncoderConfig& model) { return make_encoder(model); }
ModelSpec make(const CnnConfig& model) { return make_cnn(model); }
ModelSpec make(const MlpConfig& model) { return make_mlp(model); }
ModelSpec make(const VggConfig& model) { return make_vgg(model); }
ModelSpec make(const MobilenetConfig& model) { return make_mobilenet(model); }
ModelSpec make(const SupernetConfig& model) { return make_supernet(model); }
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

static_assert(kNetworkKinds.size() == std::variant_size_v<NetworkChoice>, "a name for each kind");

std::string to_json(const NetworkChoice& choice) {
  Members members = std::visit([](const auto& network) { return members_of(network); }, choice);
  if (choice.index() != 0) {
    members.insert(members.begin(), {"kind", json_string(kNetworkKinds.at(choice.index()))});
  }
  return object_text(members);
}

int count_blocks(const NetworkChoice& choice) {
  return std::visit([](const auto& network) { return blocks_of(network); }, choice);
}

SampleForm sample_form(const NetworkChoice& choice) {
  return std::visit([](const auto& network) { return form_of(network); }, choice);
}

std::shared_ptr<const ImportedModel> find_file(const NetworkChoice& choice) {
  const auto* const network = std::get_if<FileModel>(&choice);
  return network == nullptr ? nullptr : network->file;
}

ModelSpec make_network(const NetworkChoice& choice) {
  return std::visit([](const auto& network) { return make(network); }, choice);
}

std::vector<NamedTensor> name_weights(const NetworkChoice& choice,
                                      const std::vector<const Tensors*>& parameters) {
  return std::visit([&](const auto& network) { return name(network, parameters); }, choice);
}

}  // namespace frazil
