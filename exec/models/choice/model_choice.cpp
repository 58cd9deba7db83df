#include "exec/models/choice/model_choice.h"

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

Members members_of(const MlpConfig& model) {
  std::string widths;
  for (const int width : model.widths) {
    widths += (widths.empty() ? "[" : ", ") + std::to_string(width);
  }
  return {{"image", std::to_string(model.image)},
          {"channels", std::to_string(model.channels)},
          {"widths", widths + "]"},
          {"classes", std::to_string(model.classes)}};
}

Members members_of(const FileModel& model) { return {{"path", json_string(model.path)}}; }

int blocks_of(const VitConfig& model) { return model.blocks + kFirstAndHead; }

int blocks_of(const DecoderConfig& model) { return model.blocks + kFirstAndHead; }
int blocks_of(const EncoderConfig& model) { return model.blocks + kFirstAndHead; }
int blocks_of(const CnnConfig& model) { return 4 + 2 * model.units; }
int blocks_of(const MlpConfig& model) { return static_cast<int>(model.widths.size()) + 1; }
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

SampleForm form_of(const FileModel& model) { return sample_form(model.file->graph); }

}  // namespace

static_assert(kModelKinds.size() == std::variant_size_v<ModelChoice>, "a name for each kind");

std::string to_json(const ModelChoice& choice) {
  Members members = std::visit([](const auto& model) { return members_of(model); }, choice);
  if (choice.index() != 0) {
    members.insert(members.begin(), {"kind", json_string(kModelKinds.at(choice.index()))});
  }
  return object_text(members);
}

int count_blocks(const ModelChoice& choice) {
  return std::visit([](const auto& model) { return blocks_of(model); }, choice);
}

SampleForm sample_form(const ModelChoice& choice) {
  return std::visit([](const auto& model) { return form_of(model); }, choice);
}

std::shared_ptr<const ImportedModel> find_file(const ModelChoice& choice) {
  const auto* const model = std::get_if<FileModel>(&choice);
  return model == nullptr ? nullptr : model->file;
}

}  // namespace frazil
