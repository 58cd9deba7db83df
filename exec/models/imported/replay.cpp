#include "exec/models/imported/replay.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "exec/models/layer_graph.h"

namespace frazil {
namespace {

class Replayer {
 public:
  Replayer(const ModelSpec& model, bool splits)
      : model_(model), splits_(splits), outputs_(model.layers.size()) {
    gradients_.resize(model.layers.size());
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      gradients_[l].resize(model.layers[l].output_bytes_per_sample.size());
    }
  }

  Replay run(const Samples& samples, const RandomKey& key) {
    Replay replay;
    const std::size_t layers = model_.layers.size();
    for (std::size_t l = 0; l < layers; ++l) forward(l, samples, key);
    replay.outputs = outputs_.back();
    replay.loss = model_.layers.back().loss(outputs_.back(), samples.labels);
    graphs_.back()->add_loss(replay.loss);
    for (at::Tensor& output : replay.outputs) output = output.detach();
    replay.loss = replay.loss.detach();
    for (std::size_t l = layers; l-- > 0;) backward(l, replay);
    for (std::size_t l = layers; splits_ && l-- > 0;) {
      if (has_backward_[l]) add_weights(l, graphs_[l]->backward_weight(), replay);
    }
    return replay;
  }

 private:
  void forward(std::size_t l, const Samples& samples, const RandomKey& key) {
    const LayerId layer{l};
    Tensors inputs = read_inputs(model_, layer, outputs_, samples.inputs);
    std::vector<bool> carries(inputs.size(), false);
    std::size_t next = 0;
    for (const std::size_t e : model_.edges_into(layer)) {
      for (std::size_t o = 0; o < model_.edges[e].outputs.size(); ++o, ++next) {
        carries[next] = model_.edges[e].kind == EdgeKind::kGradient;
      }
    }
    const bool has_carrying = std::find(carries.begin(), carries.end(), true) != carries.end();
    Tensors parameters = initial_parameters(model_, layer, /*seed=*/0);
    bool is_active = false;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const bool trainable = model_.layers[l].parameters[p].trainable;
      parameters[p].set_requires_grad(trainable);
      is_active = is_active || trainable;
    }
    const LayerActivity activity{.active = is_active,
                                 .input_gradient = has_carrying,
                                 .weight_gradient = is_active,
                                 .trains = true};
    const Tensors statistics = initial_statistics(model_.layers[l]);
    graphs_.push_back(std::make_unique<LayerGraph>(
        model_, layer, parameters, activity,
        LayerGraph::Call{std::move(inputs), std::move(carries), key, splits_, &statistics}));
    outputs_[l] = graphs_[l]->take_outputs();
    has_backward_.push_back(false);
  }

  void backward(std::size_t l, Replay& replay) {
    const bool has_loss = l + 1 == model_.layers.size();
    const bool has_gradient =
        std::any_of(gradients_[l].begin(), gradients_[l].end(),
                    [](const at::Tensor& gradient) { return gradient.defined(); });
    const bool has_root =
        std::any_of(outputs_[l].begin(), outputs_[l].end(),
                    [](const at::Tensor& output) { return output.requires_grad(); });
    if (!has_root || (!has_loss && !has_gradient)) return;
    has_backward_[l] = true;
    Tensors of_inputs;
    if (splits_) {
      of_inputs = graphs_[l]->backward_input(gradients_[l]);
    } else {
      LayerGraph::Gradients found = graphs_[l]->backward(gradients_[l]);
      of_inputs = std::move(found.inputs);
      add_weights(l, std::move(found.weights), replay);
    }
    std::size_t next = 0;
    for (const std::size_t e : model_.edges_into(LayerId{l})) {
      const ModelEdge& edge = model_.edges[e];
      for (const std::size_t o : edge.outputs) {
        add(gradients_[edge.from.index()].at(o), of_inputs.at(next++));
      }
    }
  }

  void add_weights(std::size_t l, Tensors weights, Replay& replay) const {
    std::size_t next = 0;
    for (const ParameterSpec& spec : model_.layers[l].parameters) {
      if (!spec.trainable || weights.empty()) continue;
      add(replay.gradients[spec.tied.empty() ? spec.name : spec.tied], weights.at(next++));
    }
  }

  static void add(at::Tensor& sum, const at::Tensor& gradient) {
    if (!gradient.defined()) return;
    sum = sum.defined() ? sum + gradient : gradient;
  }

  const ModelSpec& model_;
  bool splits_;
  std::vector<std::unique_ptr<LayerGraph>> graphs_;
  std::vector<Tensors> outputs_;
  std::vector<Tensors> gradients_;  // of outputs
  std::vector<bool> has_backward_;
};

}  // namespace

Replay replay_step(const ModelSpec& model, const Samples& samples, const RandomKey& key,
                   bool splits) {
  return Replayer(model, splits).run(samples, key);
}

}  // namespace frazil
