#include "exec/models/choice/start_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "exec/tensors/finite.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

// The part of a parameter that a tensor of the file fills.
struct WeightPlace {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t layer = 0;
  std::size_t parameter = 0;
  std::int64_t first = 0;  // value of the parameter
};

const ParameterSpec& spec_of(const WeightPlace& place, const ModelSpec& model) {
  return model.layers[place.layer].parameters[place.parameter];
}

// What a file of weights has besides parameters, as buffers are, stays that of the model.
struct NamedPlaces {
  std::vector<WeightPlace> weights;
  std::vector<NamedTensor> others;
};

// Names tensors without memory, and sees from these which parameter holds what has which name.
NamedPlaces find_places(const NetworkChoice& choice, const ModelSpec& model) {
  std::vector<Tensors> shapes(model.layers.size());
  std::vector<const Tensors*> by_layer;
  std::map<const void*, std::pair<std::size_t, std::size_t>> owners;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    for (const ParameterSpec& spec : model.layers[l].parameters) {
      const at::Tensor shape = at::empty(spec.shape, at::device(at::kMeta).dtype(at::kFloat));
      owners[shape.storage().unsafeGetStorageImpl()] = {l, shapes[l].size()};
      shapes[l].push_back(shape);
    }
    by_layer.push_back(&shapes[l]);
  }
  NamedPlaces places;
  for (const NamedTensor& named : name_weights(choice, by_layer)) {
    const auto owner = owners.find(named.tensor.storage().unsafeGetStorageImpl());
    if (owner == owners.end()) {
      places.others.push_back(named);
      continue;
    }
    const auto [layer, parameter] = owner->second;
    places.weights.push_back(
        {named.name, named.tensor.sizes().vec(), layer, parameter, named.tensor.storage_offset()});
  }
  return places;
}

// Returns where the file has what goes to the place: under its own name or, of a tied parameter,
// under that of another use. Null if it is not there.
const TensorEntry* find_entry(const TensorFile& file, const WeightPlace& place,
                              const std::vector<WeightPlace>& places, const ModelSpec& model) {
  if (const TensorEntry* const own = file.header().find(place.name)) return own;
  const std::string& tied = spec_of(place, model).tied;
  if (tied.empty()) return nullptr;
  for (const WeightPlace& use : places) {
    if (spec_of(use, model).tied != tied) continue;
    if (const TensorEntry* const other = file.header().find(use.name)) return other;
  }
  return nullptr;
}

std::string tell_first(const std::vector<std::string>& names) {
  const std::string more = std::to_string(names.size() - 1);
  return json_string(names.front()) + (names.size() > 1 ? " and " + more + " more" : "");
}

// Throws unless the file has the tensors of all places, and no others but those that the model has
// besides parameters.
void expect_same_names(const TensorFile& file, const NamedPlaces& places, const ModelSpec& model) {
  std::vector<std::string> lacking;
  std::vector<std::string> left;
  std::set<std::string_view> known;
  for (const WeightPlace& place : places.weights) {
    known.insert(place.name);
    if (find_entry(file, place, places.weights, model) == nullptr) lacking.push_back(place.name);
  }
  for (const NamedTensor& other : places.others) known.insert(other.name);
  for (const LayerSpec& layer : model.layers) {
    for (const StatisticSpec& statistic : layer.statistics) {
      known.insert(statistic.name);
      const bool may_lack = statistic.value.scalar_type() == at::kLong;
      if (!may_lack && file.header().find(statistic.name) == nullptr) {
        lacking.push_back(statistic.name);
      }
    }
  }
  for (const TensorEntry& entry : file.header().tensors) {
    if (!known.contains(entry.name)) left.push_back(entry.name);
  }
  if (lacking.empty() && left.empty()) return;
  std::string found = lacking.empty() ? "" : "no " + tell_first(lacking);
  if (!left.empty()) found += (lacking.empty() ? "" : ", but ") + tell_first(left);
  throw InputError(file.file(), 0, found, "the weights of " + model.name + ", all and no others");
}

// Throws for a tensor besides parameters with other values than in the model.
void expect_same_others(const TensorFile& file, const std::vector<NamedTensor>& others) {
  for (const NamedTensor& other : others) {
    if (file.header().find(other.name) == nullptr) continue;
    const at::Tensor given = file.view(other.name);
    if (given.scalar_type() == other.tensor.scalar_type() && at::equal(given, other.tensor)) {
      continue;
    }
    throw InputError(file.file(), 0, "another " + json_string(other.name) + " than the model file",
                     "the same or none, for it is no parameter");
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

bool is_block_map(std::string_view name) {
  constexpr std::array<std::string_view, 3> kMaps{".c_attn.weight", ".c_proj.weight",
                                                  ".c_fc.weight"};
  return std::any_of(kMaps.begin(), kMaps.end(),
                     [name](std::string_view map) { return name.ends_with(map); });
}

// True if the maps inside the blocks lie as GPT-2 holds them. Its first map takes `dim` values to
// 3 `dim`, so that its shape tells, which those of square maps do not.
bool has_turned_maps(const TensorFile& file, const NetworkChoice& choice) {
  const auto* const decoder = std::get_if<DecoderConfig>(&choice);
  if (decoder == nullptr) return false;
  const TensorEntry* const first = file.header().find("transformer.h.0.attn.c_attn.weight");
  return first != nullptr &&
         first->shape == std::vector<std::int64_t>{decoder->dim, 3L * decoder->dim};
}

// A network with such a value gives no finite loss, and then nobody sees which file it came from.
void expect_finite(const TensorFile& file, const std::string& name, const at::Tensor& values) {
  if (!at::isFloatingType(values.scalar_type())) return;
  const bool is_good = values.scalar_type() == at::kFloat ? is_finite(values)
                                                          : at::isfinite(values).all().item<bool>();
  if (is_good) return;
  throw InputError(file.file(), 0, "a value that is not finite in " + json_string(name),
                   "finite numbers");
}

// Returns the tensor as it lies in the model. Throws for another shape or type, or values that are
// not finite.
at::Tensor read_weight(const TensorFile& file, const TensorEntry& entry, const WeightPlace& place,
                       bool turned) {
  std::vector<std::int64_t> shape = place.shape;
  if (turned) std::reverse(shape.begin(), shape.end());
  if (entry.shape != shape) {
    throw InputError(file.file(), 0,
                     "shape " + shape_text(entry.shape) + " of " + json_string(entry.name),
                     shape_text(shape) + ", as the run's model has it");
  }
  if (entry.type != TensorType::kFloat32) {
    throw InputError(file.file(), 0,
                     std::string(name_of(entry.type)) + " in " + json_string(entry.name),
                     "float32");
  }
  const at::Tensor weight = file.view(entry.name);
  expect_finite(file, entry.name, weight);
  return turned ? weight.t().contiguous() : weight;
}

// Makes `weight` the parameter's value, or that part of it which goes to the place.
void put(const at::Tensor& weight, const WeightPlace& place, const ParameterSpec& spec,
         at::Tensor& value) {
  const std::int64_t count = c10::multiply_integers(spec.shape);
  if (weight.numel() == count) {
    value = weight.view(spec.shape);
    return;
  }
  if (!value.defined()) value = at::empty(spec.shape, at::kFloat);
  value.view(-1).narrow(0, place.first, weight.numel()).copy_(weight.reshape(-1));
}

// Makes the values those of the model. Uses of a tied parameter that no name stands for have that
// of its first. Throws if two names have different values.
void take_values(const TensorFile& file, const std::vector<Tensors>& values, ModelSpec& model) {
  std::map<std::string, const ParameterSpec*> first_of;
  for (std::size_t l = 0; l < values.size(); ++l) {
    for (std::size_t p = 0; p < values[l].size(); ++p) {
      ParameterSpec& spec = model.layers[l].parameters[p];
      spec.value = values[l][p];
      ENSURE(spec.value.defined() || !spec.tied.empty(), "a name for each parameter");
      if (spec.tied.empty()) continue;
      const ParameterSpec& first = *first_of.emplace(spec.tied, &spec).first->second;
      if (!spec.value.defined()) spec.value = first.value;
      if (at::equal(first.value, spec.value)) continue;
      throw InputError(
          file.file(), 0,
          "different values of " + json_string(first.name) + " and " + json_string(spec.name),
          "equal ones: the model ties them");
    }
  }
}

void take_statistics(const TensorFile& file, ModelSpec& model) {
  for (LayerSpec& layer : model.layers) {
    for (StatisticSpec& statistic : layer.statistics) {
      if (file.header().find(statistic.name) == nullptr) continue;
      const at::Tensor given = file.copy(statistic.name);
      const bool is_alike = given.scalar_type() == statistic.value.scalar_type() &&
                            given.sizes() == statistic.value.sizes();
      if (!is_alike) {
        throw InputError(file.file(), 0, "another type or shape of " + json_string(statistic.name),
                         "that of the run's model");
      }
      expect_finite(file, statistic.name, given);
      statistic.value = given;
    }
  }
}

}  // namespace

void start_from(const TensorFile& file, const NetworkChoice& choice, ModelSpec& model) {
  const NamedPlaces places = find_places(choice, model);
  expect_same_names(file, places, model);
  expect_same_others(file, places.others);
  const bool has_turned = has_turned_maps(file, choice);
  std::vector<Tensors> values(model.layers.size());
  for (std::size_t l = 0; l < values.size(); ++l)
    values[l].resize(model.layers[l].parameters.size());
  for (const WeightPlace& place : places.weights) {
    const TensorEntry& entry = *find_entry(file, place, places.weights, model);
    const bool turned = has_turned && is_block_map(place.name);
    put(read_weight(file, entry, place, turned), place, spec_of(place, model),
        values[place.layer][place.parameter]);
  }
  take_values(file, values, model);
  take_statistics(file, model);
}

}  // namespace frazil
