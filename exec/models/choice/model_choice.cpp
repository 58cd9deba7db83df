#include "exec/models/choice/model_choice.h"

#include <algorithm>
#include <array>

#include "exec/models/choice/start_weights.h"
#include "profiles/json_settings.h"

namespace frazil {
namespace {

constexpr std::size_t kKinds = kNetworkKinds.size() + 1;

constexpr std::array<std::string_view, kKinds> list_kinds() {
  std::array<std::string_view, kKinds> kinds{};
  std::copy(kNetworkKinds.begin(), kNetworkKinds.end(), kinds.begin());
  kinds.back() = "distillation";
  return kinds;
}
constexpr std::array<std::string_view, kKinds> kModelKinds = list_kinds();

void add_file(const std::string& key, const NetworkChoice& network,
              std::vector<ChosenFile>& files) {
  if (auto model = find_file(network)) files.push_back({key, std::move(model)});
}

}  // namespace

ModelChoice parse_model(const JsonCursor& object, const std::filesystem::path& folder) {
  JsonFields fields(object);
  const std::size_t kind = take_name(fields, "kind", kModelKinds);
  if (kind < kNetworkKinds.size()) return parse_network(fields, kind, folder);
  return parse_distillation(fields, folder);
}

std::string to_json(const ModelChoice& choice) {
  return std::visit([](const auto& chosen) { return to_json(chosen); }, choice);
}

int count_blocks(const ModelChoice& choice) {
  if (const auto* const network = std::get_if<NetworkChoice>(&choice)) {
    return count_blocks(*network);
  }
  return count_blocks(std::get<DistillationChoice>(choice));
}

SampleForm sample_form(const ModelChoice& choice) { return sample_form(kept_network(choice)); }

const NetworkChoice& kept_network(const ModelChoice& choice) {
  if (const auto* const network = std::get_if<NetworkChoice>(&choice)) return *network;
  return std::get<DistillationChoice>(choice).student;
}

std::vector<ChosenFile> find_files(const ModelChoice& choice) {
  std::vector<ChosenFile> files;
  if (const auto* const network = std::get_if<NetworkChoice>(&choice)) {
    add_file("model", *network, files);
    return files;
  }
  const auto& distillation = std::get<DistillationChoice>(choice);
  add_file("model.student", distillation.student, files);
  add_file("model.teacher", distillation.teacher, files);
  return files;
}

std::string teacher_weights(const ModelChoice& choice) {
  const auto* const distillation = std::get_if<DistillationChoice>(&choice);
  return distillation == nullptr ? "" : distillation->teacher_weights;
}

ModelSpec make_model(const ModelChoice& choice) {
  if (const auto* const network = std::get_if<NetworkChoice>(&choice)) {
    return make_network(*network);
  }
  return make_distillation(make_parts(std::get<DistillationChoice>(choice)));
}

void start_from(const TensorFile& file, const ModelChoice& choice, ModelSpec& model) {
  if (const auto* const network = std::get_if<NetworkChoice>(&choice)) {
    start_from(file, *network, model);
    return;
  }
  const auto& distillation = std::get<DistillationChoice>(choice);
  ModelSpec student = make_network(distillation.student);
  start_from(file, distillation.student, student);
  const std::vector<LayerId> places = find_student_layers(distillation);
  for (std::size_t l = 0; l < places.size(); ++l) {
    LayerSpec& own = model.layers[places[l].index()];
    own.parameters = std::move(student.layers[l].parameters);
    own.statistics = std::move(student.layers[l].statistics);
  }
}

std::vector<NamedTensor> name_weights(const ModelChoice& choice,
                                      const std::vector<const Tensors*>& parameters) {
  if (const auto* const network = std::get_if<NetworkChoice>(&choice)) {
    return name_weights(*network, parameters);
  }
  const auto& distillation = std::get<DistillationChoice>(choice);
  std::vector<const Tensors*> own;
  for (const LayerId layer : find_student_layers(distillation)) {
    own.push_back(parameters.at(layer.index()));
  }
  return name_weights(distillation.student, own);
}

}  // namespace frazil
