#include "exec/models/imported/imported_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "exec/models/imported/layer_program.h"
#include "exec/models/imported/needed_nodes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using SharedModel = std::shared_ptr<const ImportedModel>;

Bytes bytes_per_sample(const ImportedType& type, const std::string& file) {
  std::int64_t bytes = static_cast<std::int64_t>(bytes_of_element(type.type));
  for (const Polynomial& polynomial : type.shape) {
    const std::int64_t size = polynomial.at(1);
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) {
      throw InputError(file, 0, "a tensor with a dimension of " + std::to_string(size),
                       "one that fits into memory");
    }
  }
  return Bytes{bytes};
}

// Returns which of the call's tensors the inputs are: of a layer that reads samples, as they are
// named.
std::vector<std::size_t> input_positions(const ImportedGraph& graph, std::size_t layer) {
  const std::vector<std::string>& names = graph.layers[layer].inputs;
  std::vector<std::size_t> positions(names.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  const bool reads_samples =
      std::none_of(graph.edges.begin(), graph.edges.end(),
                   [layer](const ImportedEdge& edge) { return edge.to == layer; });
  if (!reads_samples) return positions;
  for (std::size_t i = 0; i < names.size(); ++i) {
    positions[i] = static_cast<std::size_t>(std::stoul(names[i].substr(1)));
  }
  return positions;
}

// The nodes of a layer in training, and in evaluation where these differ.
struct LayerPrograms {
  SharedModel model;  // what the programs were made of
  LayerProgram training;
  std::optional<LayerProgram> evaluation;
};

std::shared_ptr<const LayerPrograms> make_programs(const SharedModel& model, std::size_t index,
                                                   Randomness randomness) {
  const ImportedLayer& layer = model->graph.layers[index];
  const auto make = [&](const std::vector<ImportedNode>& nodes, bool keeps_statistics) {
    return LayerProgram(*model,
                        {.inputs = layer.inputs,
                         .input_positions = input_positions(model->graph, index),
                         .samples = layer.samples,
                         .parameters = layer.parameters,
                         .constants = layer.constants,
                         .buffers = layer.buffers,
                         .nodes = nodes,
                         .outputs = layer.outputs,
                         .keeps_statistics = keeps_statistics},
                        randomness);
  };
  std::optional<LayerProgram> evaluation;
  if (layer.evaluation) evaluation.emplace(make(*layer.evaluation, false));
  return std::make_shared<const LayerPrograms>(
      LayerPrograms{model, make(layer.nodes, true), std::move(evaluation)});
}

SampleMixing find_mixing(const ImportedLayer& layer) {
  if (layer.mixes_in_evaluation) return SampleMixing::kAlways;
  return layer.mixes_samples ? SampleMixing::kInTraining : SampleMixing::kNever;
}

// Who slices a micro-batch knows which statistics of slices it can take for those of the whole.
Tensors run_layer(const LayerPrograms& programs, SampleMixing mixing, const LayerCall& call) {
  if (mixing == SampleMixing::kAlways && call.key.rows) {
    throw InfeasibleError("layer " + std::to_string(call.layer.value) +
                          " cannot work on a slice of a micro-batch, for it mixes samples");
  }
  const bool evaluates = !call.training && programs.evaluation;
  return (evaluates ? *programs.evaluation : programs.training).run(call);
}

ParameterSpec make_parameter(const ImportedModel& model, const ImportedParameter& parameter) {
  ParameterSpec spec{.name = parameter.name, .shape = parameter.shape};
  spec.value = model.tensors.view(parameter.tensor);
  spec.tied = parameter.tied;
  spec.trainable = parameter.trainable;
  return spec;
}

// True if the layer draws, which a dropout of rate 0 does not, keeps statistics, or has other nodes
// in evaluation.
bool varies_in_training(const ImportedLayer& layer, const LayerProgram& training) {
  return layer.evaluation || !layer.buffers.empty() || training.draws();
}

// What a frozen block puts out is taken to be the same whenever it is asked for.
void refuse_evaluation_that_draws(const LayerPrograms& programs, const ImportedLayer& layer) {
  const auto& evaluation = programs.evaluation ? *programs.evaluation : programs.training;
  if (!evaluation.draws_in_evaluation()) return;
  throw InputError(programs.model->tensors.file(), 0,
                   "random numbers in evaluation, in layer " + layer.name,
                   "draws in training alone, as behind `if self.training`");
}

// Returns by output the first one of its value: "v31#1" names the value of "v31" for another
// reader.
std::vector<std::size_t> find_same(const std::vector<std::string>& outputs) {
  std::map<std::string, std::size_t> first_of;
  std::vector<std::size_t> same_as;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    same_as.push_back(
        first_of.emplace(outputs[o].substr(0, outputs[o].find('#')), o).first->second);
  }
  return same_as;
}

LayerSpec make_layer(const SharedModel& model, std::size_t index, Randomness randomness) {
  const ImportedLayer& layer = model->graph.layers[index];
  const auto programs = make_programs(model, index, randomness);
  if (randomness == Randomness::kKeyed) refuse_evaluation_that_draws(*programs, layer);
  LayerSpec spec{.name = layer.name,
                 .block = BlockId{layer.block},
                 .parameters = {},
                 .forward = {},
                 .output_bytes_per_sample = {}};
  for (const std::size_t p : layer.parameters) {
    spec.parameters.push_back(make_parameter(*model, model->graph.parameters[p]));
  }
  for (std::size_t b = 0; b < layer.buffers.size(); ++b) {
    const ImportedBuffer& buffer = model->graph.buffers[layer.buffers[b]];
    spec.statistics.push_back(
        {buffer.name, model->tensors.copy(buffer.tensor), programs->training.momenta()[b]});
  }
  for (const ImportedType& type : layer.output_types) {
    spec.output_bytes_per_sample.push_back(bytes_per_sample(type, model->tensors.file()));
  }
  spec.has_seams = programs->training.has_seams() &&
                   (!programs->evaluation || programs->evaluation->has_seams());
  spec.mixes_samples = find_mixing(layer);
  spec.forward = [programs, mixing = spec.mixes_samples](const LayerCall& call) {
    return run_layer(*programs, mixing, call);
  };
  spec.varies_in_training = varies_in_training(layer, programs->training);
  spec.same_as = find_same(layer.outputs);
  spec.follows_gradients = true;  // any operation may: of two kernels of LSTM, say, one trains
  return spec;
}

// What counts the labels that are not ignored: in the labels, or in what the loss makes of them.
struct LabelCount {
  SharedModel model;
  std::vector<std::string> inputs{"labels"};
  std::vector<std::string> outputs;
  std::vector<ImportedNode> nodes = {};
  std::vector<std::size_t> none = {};
  std::optional<LayerProgram> program = std::nullopt;  // makes what is counted
};

std::function<std::int64_t(const at::Tensor&)> make_label_count(const SharedModel& model) {
  const ImportedLoss& loss = model->graph.loss;
  auto count = std::make_shared<LabelCount>(LabelCount{.model = model, .outputs = {loss.counted}});
  if (loss.counted != "labels") {
    count->nodes = find_needed_nodes(loss.nodes, loss.counted).nodes;
    count->program.emplace(*model,
                           ProgramSource{.inputs = count->inputs,
                                         .input_positions = {0},
                                         .samples = {},
                                         .parameters = count->none,
                                         .constants = loss.constants,
                                         .buffers = count->none,
                                         .nodes = count->nodes,
                                         .outputs = count->outputs},
                           Randomness::kKeyed);
  }
  return [count, ignored = *loss.ignored_label](const at::Tensor& labels) {
    const RandomKey key;
    const Tensors inputs{labels};
    const at::Tensor counted =
        count->program ? count->program->run({LayerId{0}, {}, inputs, key}).at(0) : labels;
    return counted.ne(ignored).sum().item<std::int64_t>();
  };
}

// The loss reads outputs of the last layer, and labels.
std::function<at::Tensor(const Tensors&, const at::Tensor&)> make_loss(const SharedModel& model) {
  const ImportedLoss& loss = model->graph.loss;
  const std::vector<std::size_t> none;
  const std::vector<std::string> results{loss.result};
  std::vector<std::size_t> positions(loss.inputs.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  const auto program =
      std::make_shared<const LayerProgram>(*model,
                                           ProgramSource{.inputs = loss.inputs,
                                                         .input_positions = positions,
                                                         .samples = loss.samples,
                                                         .parameters = none,
                                                         .constants = loss.constants,
                                                         .buffers = none,
                                                         .nodes = loss.nodes,
                                                         .outputs = results},
                                           Randomness::kKeyed);
  return [model, program](const Tensors& outputs, const at::Tensor& labels) {
    Tensors inputs;
    for (const std::string& name : model->graph.loss.inputs) {
      inputs.push_back(name == "labels" ? labels : outputs.at(std::stoul(name.substr(1))));
    }
    const RandomKey key;
    return program->run({LayerId{0}, {}, inputs, key}).at(0);
  };
}

}  // namespace

ModelSpec make_imported(std::shared_ptr<const ImportedModel> model, Randomness randomness) {
  const ImportedGraph& graph = model->graph;
  ModelSpec spec;
  spec.name = graph.name;
  spec.blocks = graph.blocks;
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    spec.layers.push_back(make_layer(model, l, randomness));
  }
  spec.layers.back().loss = make_loss(model);
  if (graph.loss.ignored_label) spec.layers.back().count_labels = make_label_count(model);
  for (const ImportedEdge& edge : graph.edges) {
    spec.edges.push_back({LayerId{edge.from}, LayerId{edge.to},
                          edge.carries_gradients ? EdgeKind::kGradient : EdgeKind::kDetached,
                          edge.outputs});
  }
  for (const ImportedInput& input : graph.inputs) {
    spec.input_bytes_per_sample += bytes_per_sample(input.type, model->tensors.file());
  }
  return spec;
}

}  // namespace frazil
