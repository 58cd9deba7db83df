#include "exec/models/weight_names.h"

#include <ATen/ATen.h>

#include <array>
#include <string_view>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::string_view kFused = ".query_key_value.";
constexpr std::array kParts{".query.", ".key.", ".value."};

void add_parts(const NamedTensor& fused, std::vector<NamedTensor>& weights) {
  const std::size_t place = fused.name.find(kFused);
  const at::Tensor& all = fused.tensor;
  const std::int64_t rows = all.size(0) / static_cast<std::int64_t>(kParts.size());
  std::int64_t first = 0;
  for (const char* const part : kParts) {
    std::string name = fused.name;
    weights.push_back({name.replace(place, kFused.size(), part), all.narrow(0, first, rows)});
    first += rows;
  }
}

}  // namespace

std::vector<NamedTensor> name_weights(const ModelSpec& model,
                                      const std::vector<const Tensors*>& parameters) {
  ENSURE(parameters.size() == model.layers.size(), "the parameters of each layer");
  std::vector<NamedTensor> weights;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const std::vector<ParameterSpec>& specs = model.layers[l].parameters;
    ENSURE(parameters[l]->size() == specs.size(), "a tensor for each parameter");
    for (std::size_t p = 0; p < specs.size(); ++p) {
      NamedTensor weight{specs[p].name, (*parameters[l])[p].detach()};
      if (weight.name.find(kFused) != std::string::npos) {
        add_parts(weight, weights);
      } else {
        weights.push_back(std::move(weight));
      }
    }
  }
  return weights;
}

std::vector<NamedTensor> name_statistics(const ModelSpec& model,
                                         const std::vector<const Tensors*>& statistics) {
  ENSURE(statistics.size() == model.layers.size(), "the statistics of each layer");
  std::vector<NamedTensor> named;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const std::vector<StatisticSpec>& specs = model.layers[l].statistics;
    ENSURE(statistics[l]->size() == specs.size(), "a tensor for each statistic");
    for (std::size_t s = 0; s < specs.size(); ++s) {
      named.push_back({specs[s].name, statistics[l]->at(s)});
    }
  }
  return named;
}

}  // namespace frazil
