#include "exec/models/convolutions/supernet.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/models/convolutions/gates.h"

namespace frazil {
namespace {

constexpr std::size_t kArchitecture = 0;  // place of the architecture parameters in a cell
constexpr std::uint64_t kPathStream = 0x70617468;

// Returns the call with weights that take no gradient, and without listeners. `weights` must
// outlive it.
LayerCall without_weights(const LayerCall& call, Tensors& weights) {
  for (const at::Tensor& weight : call.parameters) weights.push_back(weight.detach());
  return {.layer = call.layer,
          .parameters = weights,
          .inputs = call.inputs,
          .key = call.key,
          .training = call.training,
          .statistics = call.statistics};
}

// Makes room for all statistics of the layer. Those of what has not run stay undefined.
void hand_out_rest(const LayerCall& call, std::size_t statistics) {
  if (call.batch_statistics != nullptr) call.batch_statistics->resize(statistics);
}

std::vector<float> read_architecture(const at::Tensor& architecture) {
  const at::Tensor here = architecture.detach().to(at::kCPU).contiguous();
  const float* const first = here.const_data_ptr<float>();
  return {first, first + here.numel()};
}

class SupernetCell {
 public:
  SupernetCell(const SupernetConfig& config, const CellShape& shape, LayerSpec& layer)
      : config_(config), shape_(shape) {
    const std::size_t count = kCellOperations.size() - (shape.has_skip() ? 0 : 1);
    layer.parameters.push_back(
        constant(shape.name + ".architecture", static_cast<std::int64_t>(count), 0));
    for (std::size_t i = 0; i < count; ++i) {
      operations_.emplace_back(shape, static_cast<CellOperation>(i),
                               shape.name + "." + std::string(kCellOperations.at(i)), layer);
    }
    parameters_ = layer.parameters.size();
    statistics_ = layer.statistics.size();
  }

  at::Tensor forward(const LayerCall& call) const {
    const at::Tensor& architecture = call.parameters[kArchitecture];
    if (!call.training) return run(most_probable(architecture), call);
    const std::size_t drawn = draw_operation(architecture, call.layer, call.key);
    if (is_architecture_step(config_, call.key.step)) return learn_architecture(drawn, call);
    const at::Tensor output = run(drawn, call);
    hand_out_rest(call, statistics_);
    return output;
  }

  MovedParts find_moved(LayerId layer, const Tensors& parameters, const RandomKey& key) const {
    MovedParts moved{std::vector<bool>(parameters_), std::vector<bool>(statistics_)};
    if (is_architecture_step(config_, key.step)) {
      moved.parameters[kArchitecture] = true;
      return moved;
    }
    const std::size_t drawn = draw_operation(parameters[kArchitecture], layer, key);
    mark(operations_[drawn].parameters(), moved.parameters);
    mark(operations_[drawn].statistics(), moved.statistics);
    return moved;
  }

 private:
  static void mark(const InvertedResidual::Places& places, std::vector<bool>& moved) {
    for (std::size_t p = places.first; p < places.end; ++p) moved[p] = true;
  }

  at::Tensor run(std::size_t operation, const LayerCall& call) const {
    return add_skip(shape_, call.inputs.at(0), operations_[operation].run(call));
  }

  // The skip is no part of what the gates weigh: it has the same share in every operation, and so
  // none in the gradient of the architecture parameters.
  at::Tensor learn_architecture(std::size_t drawn, const LayerCall& call) const {
    Tensors weights;
    const LayerCall quiet = without_weights(call, weights);
    hand_out_rest(call, statistics_);
    const std::optional<at::Tensor> output = operations_[drawn].run(quiet);
    const at::Tensor cell = add_skip(shape_, call.inputs.at(0), output);
    // A forward that keeps nothing does without the others; it will be run again.
    if (!c10::GradMode::is_enabled()) return cell;
    const at::Tensor probabilities = at::softmax(call.parameters[kArchitecture], 0);
    if (call.operations != nullptr)
      call.operations->push_back({probabilities, {kArchitecture}, {}});
    Tensors outputs;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const c10::NoGradGuard no_grad;
      const std::optional<at::Tensor> one = i == drawn ? output : operations_[i].run(quiet);
      outputs.push_back(one ? one->detach() : at::Tensor());
    }
    return pass_gates(cell, probabilities, outputs);
  }

  SupernetConfig config_;
  CellShape shape_;
  std::vector<InvertedResidual> operations_;
  std::size_t parameters_ = 0;  // how many the layer has
  std::size_t statistics_ = 0;
};

LayerSpec make_supernet_cell(const SupernetConfig& config, const CellShape& shape, BlockId block) {
  LayerSpec layer = begin_cell(shape, block);
  const SupernetCell cell(config, shape, layer);
  layer.varies_in_training = true;
  layer.forward = [cell](const LayerCall& call) -> Tensors { return {cell.forward(call)}; };
  layer.moved = [cell](LayerId id, const Tensors& parameters, const RandomKey& key) {
    return cell.find_moved(id, parameters, key);
  };
  return layer;
}

// Has a layer that is no cell stay as it is in architecture steps.
void rest_in_architecture_steps(const SupernetConfig& config, LayerSpec& layer) {
  const std::size_t parameters = layer.parameters.size();
  const std::size_t statistics = layer.statistics.size();
  layer.forward = [config, statistics, plain = std::move(layer.forward)](const LayerCall& call) {
    if (!call.training || !is_architecture_step(config, call.key.step)) return plain(call);
    Tensors weights;
    hand_out_rest(call, statistics);
    return plain(without_weights(call, weights));
  };
  layer.moved = [config, parameters, statistics](LayerId, const Tensors&, const RandomKey& key) {
    const bool moves = !is_architecture_step(config, key.step);
    return MovedParts{std::vector<bool>(parameters, moves), std::vector<bool>(statistics, moves)};
  };
}

}  // namespace

ModelSpec make_supernet(const SupernetConfig& config) {
  ModelSpec model = make_stages(config.shape, "supernet",
                                [&](const CellShape& cell, BlockId block, std::size_t /*place*/) {
                                  return make_supernet_cell(config, cell, block);
                                });
  for (LayerSpec& layer : model.layers) {
    if (!layer.moved) rest_in_architecture_steps(config, layer);
  }
  return model;
}

bool is_architecture_step(const SupernetConfig& config, Step step) {
  return config.architecture_every > 0 && step >= config.architecture_from &&
         (step + 1) % config.architecture_every == 0;
}

std::vector<double> find_probabilities(const at::Tensor& architecture) {
  const std::vector<float> values = read_architecture(architecture);
  const double largest = *std::max_element(values.begin(), values.end());
  std::vector<double> probabilities;
  double sum = 0;
  for (const float value : values) sum += probabilities.emplace_back(std::exp(value - largest));
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

std::size_t draw_operation(const at::Tensor& architecture, LayerId layer, const RandomKey& key) {
  const std::vector<double> probabilities = find_probabilities(architecture);
  constexpr unsigned kSpareBits = 11;  // of a drawn number, whose others a double holds
  KeyedDraws draws(kPathStream, key.seed, static_cast<std::uint64_t>(key.step), layer.index());
  double left = static_cast<double>(draws.next() >> kSpareBits) * 0x1p-53;
  std::size_t drawn = 0;
  while (drawn + 1 < probabilities.size() && left >= probabilities[drawn]) {
    left -= probabilities[drawn++];
  }
  return drawn;
}

std::size_t most_probable(const at::Tensor& architecture) {
  const std::vector<float> values = read_architecture(architecture);
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace frazil
