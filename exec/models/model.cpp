#include "exec/models/model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "profiles/error.h"

namespace frazil {
namespace {

Bytes bytes_of(const ParameterSpec& parameter) {
  return Bytes{std::accumulate(parameter.shape.begin(), parameter.shape.end(),
                               static_cast<std::int64_t>(sizeof(float)), std::multiplies<>())};
}

at::Tensor draw(const ParameterSpec& spec, at::Generator& generator) {
  if (spec.value.defined()) return spec.value.clone();
  at::Tensor value = at::empty(spec.shape, at::kFloat);
  if (spec.bound > 0) return value.uniform_(-spec.bound, spec.bound, generator);
  if (spec.bound < 0) return value.normal_(0, 1, generator);
  return value.fill_(spec.constant);
}

LayerId first_use(const ModelSpec& model, const std::string& tied) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    for (const ParameterSpec& parameter : model.layers[l].parameters) {
      if (parameter.tied == tied) return LayerId{l};
    }
  }
  ENSURE(false, "a tied parameter is used");
}

// Returns the bytes of an output in the model's precision.
Bytes bytes_of(const ModelSpec& model, const LayerSpec& layer, std::size_t output) {
  const Bytes bytes = layer.output_bytes_per_sample.at(output);
  const auto& narrow = layer.narrow_outputs;
  const bool is_half = model.precision == Precision::kBf16 &&
                       std::find(narrow.begin(), narrow.end(), output) != narrow.end();
  return is_half ? Bytes{bytes.count / 2} : bytes;
}

std::vector<TiedParameter> find_tied(const ModelSpec& model) {
  std::map<std::string, TiedParameter> by_name;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const std::vector<ParameterSpec>& parameters = model.layers[l].parameters;
    for (const ParameterSpec& parameter : parameters) {
      if (parameter.tied.empty()) continue;
      ENSURE(parameters.size() == 1, "a layer with a tied parameter has no others");
      TiedParameter& tied = by_name[parameter.tied];
      tied.name = parameter.tied;
      tied.bytes = bytes_of(parameter);
      ENSURE(tied.layers.empty() || tied.trainable == parameter.trainable,
             "all uses of a tied parameter train, or none");
      tied.trainable = parameter.trainable;
      tied.layers.push_back(LayerId{l});
    }
  }
  std::vector<TiedParameter> all;
  all.reserve(by_name.size());
  for (auto& [name, tied] : by_name) all.push_back(std::move(tied));
  return all;
}

}  // namespace

ParameterSpec linear_weight(const std::string& name, std::int64_t out, std::int64_t in) {
  return {name + ".weight", {out, in}, 1.0 / std::sqrt(static_cast<double>(in)), 0};
}

ParameterSpec linear_bias(const std::string& name, std::int64_t out, std::int64_t in) {
  return {name + ".bias", {out}, 1.0 / std::sqrt(static_cast<double>(in)), 0};
}

ParameterSpec constant(const std::string& name, std::int64_t size, double value) {
  return {name, {size}, 0, value};
}

Bytes float_bytes(std::int64_t values) {
  return Bytes{values * static_cast<std::int64_t>(sizeof(float))};
}

bool mixes_samples(const LayerSpec& layer, bool training) {
  switch (layer.mixes_samples) {
    case SampleMixing::kNever:
      return false;
    case SampleMixing::kInTraining:
      return training;
    case SampleMixing::kAlways:
      return true;
  }
  ENSURE(false, "unknown mixing of samples");
}

std::vector<std::size_t> ModelSpec::edges_into(LayerId layer) const {
  std::vector<std::size_t> found;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (edges[e].to == layer) found.push_back(e);
  }
  return found;
}

std::vector<std::size_t> ModelSpec::edges_from(LayerId layer) const {
  std::vector<std::size_t> found;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (edges[e].from == layer) found.push_back(e);
  }
  return found;
}

std::vector<ModelEdge> make_chain(const std::vector<LayerSpec>& layers) {
  std::vector<ModelEdge> edges;
  for (std::size_t l = 1; l < layers.size(); ++l) {
    ModelEdge edge{.from = LayerId{l - 1}, .to = LayerId{l}, .outputs = {}};
    edge.outputs.resize(layers[l - 1].output_bytes_per_sample.size());
    std::iota(edge.outputs.begin(), edge.outputs.end(), std::size_t{0});
    edges.push_back(std::move(edge));
  }
  return edges;
}

Tensors initial_parameters(const ModelSpec& model, LayerId layer, std::uint64_t seed) {
  constexpr std::uint64_t kInitialStream = 0x696e6974;
  at::Generator generator = make_generator(kInitialStream, seed, layer.index(), 0);
  Tensors parameters;
  for (const ParameterSpec& spec : model.layers[layer.index()].parameters) {
    const LayerId origin = spec.tied.empty() ? layer : first_use(model, spec.tied);
    parameters.push_back(origin == layer ? draw(spec, generator)
                                         : initial_parameters(model, origin, seed).at(0));
  }
  return parameters;
}

Tensors initial_statistics(const LayerSpec& layer) {
  Tensors statistics;
  for (const StatisticSpec& spec : layer.statistics) statistics.push_back(spec.value.clone());
  return statistics;
}

Tensors read_inputs(const ModelSpec& model, LayerId layer, const std::vector<Tensors>& outputs,
                    const Tensors& inputs) {
  const std::vector<std::size_t> incoming = model.edges_into(layer);
  if (incoming.empty()) return inputs;
  Tensors read;
  for (const std::size_t e : incoming) {
    const ModelEdge& edge = model.edges[e];
    for (const std::size_t o : edge.outputs) read.push_back(outputs[edge.from.index()].at(o));
  }
  return read;
}

std::vector<Tensors> forward_model(const ModelSpec& model,
                                   const std::vector<const Tensors*>& parameters,
                                   const Tensors& inputs) {
  std::vector<Tensors> outputs;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Tensors read = read_inputs(model, LayerId{l}, outputs, inputs);
    const Tensors statistics = initial_statistics(model.layers[l]);
    outputs.push_back(model.layers[l].forward({.layer = LayerId{l},
                                               .parameters = *parameters[l],
                                               .inputs = read,
                                               .key = {},
                                               .statistics = &statistics}));
  }
  return outputs;
}

std::vector<Tensors> example_outputs(const ModelSpec& model, const Samples& samples) {
  const c10::NoGradGuard no_grad;
  std::vector<Tensors> parameters;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    parameters.push_back(initial_parameters(model, LayerId{l}, /*seed=*/0));
  }
  std::vector<const Tensors*> pointers;
  for (const Tensors& own : parameters) pointers.push_back(&own);
  return forward_model(model, pointers, samples.inputs);
}

ModelProfile make_structure(const ModelSpec& model, int optimizer_bytes_per_parameter_byte) {
  ModelProfile profile;
  profile.model = model.name;
  profile.precision = model.precision;
  profile.blocks = model.blocks;
  profile.input_bytes_per_sample = model.input_bytes_per_sample;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerSpec& spec = model.layers[l];
    Layer layer;
    layer.name = spec.name;
    layer.block = spec.block;
    layer.has_loss = model.has_loss(LayerId{l});
    layer.varies_in_training = spec.varies_in_training;
    for (const ParameterSpec& parameter : spec.parameters) {
      layer.parameters += bytes_of(parameter);
      if (!parameter.trainable) layer.untrainable += bytes_of(parameter);
    }
    layer.optimizer_state = layer.trainable() * optimizer_bytes_per_parameter_byte;
    layer.costs.emplace_back();
    profile.layers.push_back(layer);
  }
  for (const ModelEdge& edge : model.edges) {
    Edge described{edge.from, edge.to, edge.kind, {}};
    for (const std::size_t o : edge.outputs) {
      described.tensor_bytes_per_sample.push_back(
          bytes_of(model, model.layers[edge.from.index()], o));
    }
    profile.edges.push_back(std::move(described));
  }
  profile.tied = find_tied(model);
  return profile;
}

}  // namespace frazil
