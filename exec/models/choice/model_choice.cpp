#include "exec/models/choice/model_choice.h"

#include "profiles/json_settings.h"

namespace frazil {
namespace {

constexpr int kFirstAndHead = 2;  // blocks besides those between

Members members_of(const VitConfig& model) {
  return {{"image", std::to_string(model.image)},     {"channels", std::to_string(model.channels)},
          {"patch", std::to_string(model.patch)},     {"dim", std::to_string(model.dim)},
          {"blocks", std::to_string(model.blocks)},   {"heads", std::to_string(model.heads)},
          {"classes", std::to_string(model.classes)}, {"dropout", number_text(model.dropout)}};
}

int blocks_of(const VitConfig& model) { return model.blocks + kFirstAndHead; }

SampleForm form_of(const VitConfig& model) {
  return image_form(model.channels, model.image, model.classes);
}

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

}  // namespace frazil
