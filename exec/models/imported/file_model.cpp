#include "exec/models/imported/file_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kImageDimensions = 3;

// Operations that hand on the numbers of an input, in another shape or whole.
constexpr std::array<std::string_view, 12> kRearranging{
    "aten::view",         "aten::reshape",
    "aten::slice.Tensor", "aten::alias",
    "aten::clone",        "aten::contiguous",
    "aten::expand",       "aten::unsqueeze",
    "aten::squeeze.dim",  "aten::flatten.using_ints",
    "aten::to.dtype",     "aten::detach"};

std::optional<Element> element_of(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return Element::kFloat32;
    case TensorType::kInt64:
      return Element::kInt64;
    case TensorType::kBool:
      return Element::kBool;
    default:
      return std::nullopt;
  }
}

// Returns the shape of one sample, none if it is not the same for every n.
std::optional<std::vector<std::int64_t>> shape_of_sample(const ImportedType& type) {
  if (type.shape.empty() || type.shape.front().kind != Polynomial::Kind::kSamples) {
    return std::nullopt;
  }
  std::vector<std::int64_t> shape;
  for (std::size_t d = 1; d < type.shape.size(); ++d) {
    if (type.shape[d].depends_on_samples()) return std::nullopt;
    shape.push_back(type.shape[d].at(/*samples=*/1));
  }
  return shape;
}

void expect_trainable_type(const ImportedType& type, const std::string& name,
                           const std::string& file) {
  const std::string of = " of type " + std::string(name_of(type.type));
  if (!element_of(type.type)) {
    throw InputError(file, 0, name + of, "float32, int64 or bool, as data files hold them");
  }
  if (shape_of_sample(type)) return;
  throw InputError(file, 0, name + " of another shape for other n",
                   "n first, and sizes that are the same for all n");
}

bool is_value(const ImportedArgument& argument) {
  return argument.kind == ImportedArgument::Kind::kValue;
}

// Returns how many rows the parameter has that the argument is; none if it is no parameter.
std::optional<std::int64_t> count_rows(const ImportedGraph& graph, const ImportedLayer& layer,
                                       const ImportedArgument& argument) {
  if (!is_value(argument)) return std::nullopt;
  for (const std::size_t p : layer.parameters) {
    if (argument.text != "p" + std::to_string(p)) continue;
    const std::vector<std::int64_t>& shape = graph.parameters[p].shape;
    if (!shape.empty()) return shape.front();
  }
  return std::nullopt;
}

bool rearranges(const ImportedNode& node) {
  return std::find(kRearranging.begin(), kRearranging.end(), node.op) != kRearranging.end() &&
         !node.arguments.empty() && is_value(node.arguments[0]) && !node.results.empty() &&
         node.results[0].names.size() == 1;
}

// Returns for each input that an embedding looks up how many rows its table has.
std::map<std::string, std::int64_t> find_tables(const ImportedGraph& graph) {
  std::map<std::string, std::int64_t> tables;
  for (const ImportedLayer& layer : graph.layers) {
    std::map<std::string, std::string> origin;  // of values that are an input rearranged
    const auto origin_of = [&](const std::string& name) {
      const auto found = origin.find(name);
      return found == origin.end() ? name : found->second;
    };
    for (const ImportedNode& node : layer.nodes) {
      const std::vector<ImportedArgument>& arguments = node.arguments;
      if (rearranges(node)) origin[node.results[0].names[0]] = origin_of(arguments[0].text);
      if (node.op != "aten::embedding" || arguments.size() < 2 || !is_value(arguments[1])) continue;
      const std::string input = origin_of(arguments[1].text);
      const std::optional<std::int64_t> rows = count_rows(graph, layer, arguments[0]);
      if (!rows || !input.starts_with('i')) continue;
      const auto [place, is_new] = tables.emplace(input, *rows);
      if (!is_new) place->second = std::min(place->second, *rows);
    }
  }
  return tables;
}

InputMeaning meaning_of(const std::string& name, const InputForm& form, bool is_only,
                        bool is_looked_up) {
  if (form.element == Element::kFloat32) {
    const bool is_image = is_only && form.shape.size() == kImageDimensions;
    return is_image ? InputMeaning::kImage : InputMeaning::kNumbers;
  }
  if (form.shape.size() != 1) return InputMeaning::kNumbers;
  if (name.ends_with("mask")) return InputMeaning::kMask;
  if (!is_looked_up) return InputMeaning::kNumbers;
  const bool is_segment =
      name.find("type") != std::string::npos || name.find("segment") != std::string::npos;
  return is_segment ? InputMeaning::kSegments : InputMeaning::kTokens;
}

std::vector<InputForm> forms_of_inputs(const ImportedGraph& graph) {
  const std::map<std::string, std::int64_t> tables = find_tables(graph);
  std::vector<InputForm> forms;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const ImportedInput& input = graph.inputs[i];
    InputForm form{.shape = shape_of_sample(input.type).value_or(std::vector<std::int64_t>{}),
                   .element = element_of(input.type.type).value_or(Element::kFloat32)};
    const auto table = tables.find("i" + std::to_string(i));
    if (table != tables.end()) form.end = table->second;
    form.meaning = meaning_of(input.name, form, graph.inputs.size() == 1, table != tables.end());
    forms.push_back(std::move(form));
  }
  return forms;
}

// Returns the number of scores that the first output has for each label, 0 if it is no output of
// scores.
std::int64_t count_scores(const ImportedGraph& graph, const std::vector<std::int64_t>& labels) {
  const std::vector<ImportedType>& outputs = graph.layers.back().output_types;
  if (outputs.empty() || outputs.front().type != TensorType::kFloat32) return 0;
  const auto shape = shape_of_sample(outputs.front());
  if (!shape || shape->size() != labels.size() + 1) return 0;
  const bool is_one_for_each = std::equal(labels.begin(), labels.end(), shape->begin());
  return is_one_for_each ? shape->back() : 0;
}

}  // namespace

FileModel read_file_model(const std::filesystem::path& path) {
  auto file = std::make_shared<const ImportedModel>(read_model_file(path));
  const ImportedGraph& graph = file->graph;
  for (const ImportedInput& input : graph.inputs) {
    expect_trainable_type(input.type, "the input " + input.name, path.string());
  }
  expect_trainable_type(graph.labels, "labels", path.string());
  if (graph.blocks.size() < 2) {
    throw InputError(path.string(), 0, "a model of one block",
                     "two or more, of which the last is the head, as a model has whose layers are "
                     "children of a ModuleList");
  }
  return {path.string(), std::move(file)};
}

SampleForm sample_form(const ImportedGraph& graph) {
  SampleForm form{.inputs = forms_of_inputs(graph)};
  for (const ImportedInput& input : graph.inputs) form.input_names.push_back(input.name);
  form.label_shape = shape_of_sample(graph.labels).value_or(std::vector<std::int64_t>{});
  form.label_element = element_of(graph.labels.type).value_or(Element::kInt64);
  form.labels = LabelMeaning::kOther;
  form.ignored_label = graph.loss.ignored_label;
  if (form.label_element != Element::kInt64) return form;
  form.classes = count_scores(graph, form.label_shape);
  if (form.classes == 0) return form;
  const InputForm& first = form.inputs.front();
  if (form.label_shape.empty()) form.labels = LabelMeaning::kClass;
  if (first.meaning == InputMeaning::kTokens && first.shape == form.label_shape &&
      first.end == form.classes) {
    form.labels = LabelMeaning::kNextToken;
  }
  return form;
}

std::vector<NamedTensor> name_weights(const ImportedModel& model,
                                      const std::vector<const Tensors*>& parameters) {
  ENSURE(parameters.size() == model.graph.layers.size(), "the parameters of each layer");
  std::vector<NamedTensor> weights;
  std::set<std::string> named;
  for (std::size_t l = 0; l < parameters.size(); ++l) {
    const std::vector<std::size_t>& own = model.graph.layers[l].parameters;
    ENSURE(parameters[l]->size() == own.size(), "a tensor for each parameter");
    for (std::size_t p = 0; p < own.size(); ++p) {
      const std::string& name = model.graph.parameters[own[p]].tensor;
      if (named.insert(name).second) weights.push_back({name, (*parameters[l])[p].detach()});
    }
  }
  for (const std::string& name : model.graph.kept) {
    weights.push_back({name, model.tensors.view(name)});
  }
  return weights;
}

}  // namespace frazil
