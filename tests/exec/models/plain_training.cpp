#include "tests/exec/models/plain_training.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "profiles/error.h"

namespace frazil {
namespace {

// Returns what a layer reads; detached edges give it without a graph.
Tensors read_edges(const ModelSpec& model, LayerId layer, const std::vector<Tensors>& outputs,
                   const Tensors& samples) {
  Tensors read;
  bool reads_samples = true;
  for (const ModelEdge& edge : model.edges) {
    if (edge.to != layer) continue;
    reads_samples = false;
    for (const std::size_t o : edge.outputs) {
      const at::Tensor& output = outputs[edge.from.index()].at(o);
      read.push_back(edge.kind == EdgeKind::kDetached ? output.detach() : output);
    }
  }
  return reads_samples ? samples : read;
}

// Returns whether a layer depends on a parameter that trains, its own or that of a layer before.
bool depends_on_trained(const ModelSpec& model, LayerId layer, const Tensors& own,
                        const std::vector<bool>& depends) {
  const bool has_own = std::any_of(own.begin(), own.end(), [](const at::Tensor& parameter) {
    return parameter.requires_grad();
  });
  return has_own || std::any_of(model.edges.begin(), model.edges.end(), [&](const ModelEdge& edge) {
           return edge.to == layer && edge.kind == EdgeKind::kGradient &&
                  depends[edge.from.index()];
         });
}

at::Tensor add_defined(const at::Tensor& a, const at::Tensor& b) {
  ENSURE(a.defined() == b.defined(), "a gradient in all micro-batches or in none");
  return a.defined() ? a + b : a;
}

LayerTensors add_two(const LayerTensors& a, const LayerTensors& b) {
  LayerTensors sums(a.size());
  for (std::size_t l = 0; l < a.size(); ++l) {
    for (std::size_t p = 0; p < a[l].size(); ++p) sums[l].push_back(add_defined(a[l][p], b[l][p]));
  }
  return sums;
}

class PlainAutocast {
 public:
  explicit PlainAutocast(Precision precision) : is_on_(precision == Precision::kBf16) {
    if (!is_on_) return;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~PlainAutocast() {
    if (!is_on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  PlainAutocast(const PlainAutocast&) = delete;
  PlainAutocast& operator=(const PlainAutocast&) = delete;

 private:
  bool is_on_;
};

}  // namespace

LayerTensors start_values(const ModelSpec& model, std::uint64_t seed, bool shares) {
  LayerTensors parameters;
  std::map<std::string, at::Tensor> tied;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    Tensors own = initial_parameters(model, LayerId{l}, seed);
    for (std::size_t p = 0; p < own.size(); ++p) {
      own[p].set_requires_grad(true);
      const std::string& name = model.layers[l].parameters[p].tied;
      if (shares && !name.empty()) own[p] = tied.try_emplace(name, own[p]).first->second;
    }
    parameters.push_back(std::move(own));
  }
  return parameters;
}

void freeze(const ModelSpec& model, LayerTensors& parameters, const std::string& mask) {
  std::set<std::string> trained;  // tied parameters
  const auto is_active = [&](std::size_t layer) {
    return mask.at(model.layers[layer].block.index()) == '1';
  };
  for (std::size_t l = 0; l < parameters.size(); ++l) {
    for (const ParameterSpec& spec : model.layers[l].parameters) {
      if (is_active(l)) trained.insert(spec.tied);
    }
  }
  trained.erase("");
  for (std::size_t l = 0; l < parameters.size(); ++l) {
    for (std::size_t p = 0; p < parameters[l].size(); ++p) {
      const ParameterSpec& spec = model.layers[l].parameters[p];
      const bool trains = is_active(l) || trained.contains(spec.tied);
      parameters[l][p].set_requires_grad(trains && spec.trainable);
    }
  }
}

Differentiated differentiate(const ModelSpec& model, const LayerTensors& parameters,
                             const Samples& samples, const RandomKey& key, double scale,
                             Precision precision, const std::string& mask) {
  std::optional<PlainAutocast> autocast(std::in_place, precision);
  std::vector<Tensors> outputs;
  Tensors losses;  // losses that something learns from in this step
  std::vector<bool> depends;
  Tensors trained;
  Differentiated result;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    const Tensors read = read_edges(model, LayerId{l}, outputs, samples.inputs);
    bool trains = !mask.empty() && mask.at(layer.block.index()) == '1';
    for (const at::Tensor& parameter : parameters[l]) {
      if (!parameter.requires_grad()) continue;
      trained.push_back(parameter);
      trains = true;
    }
    // What is in evaluation has not trained, and has the statistics that it began with.
    const Tensors statistics = initial_statistics(layer);
    outputs.push_back(
        layer.forward({LayerId{l}, parameters[l], read, key, trains, nullptr, &statistics}));
    depends.push_back(depends_on_trained(model, LayerId{l}, parameters[l], depends));
    if (!layer.loss || !depends[l]) continue;
    const at::Tensor loss = layer.loss(outputs.back(), samples.labels) * scale;
    result.losses.push_back(loss.item<double>());
    if (loss.requires_grad()) losses.push_back(loss);
  }
  autocast.reset();
  const Tensors found = torch::autograd::grad(losses, trained, {}, /*retain_graph=*/std::nullopt,
                                              /*create_graph=*/false, /*allow_unused=*/true);
  auto next = found.begin();
  for (const Tensors& own : parameters) {
    Tensors& gradients = result.gradients.emplace_back(own.size());
    for (std::size_t p = 0; p < own.size(); ++p) {
      if (own[p].requires_grad()) gradients[p] = *next++;
    }
  }
  return result;
}

LayerTensors add_four(const std::vector<LayerTensors>& gradients) {
  ENSURE(gradients.size() == 4, "four micro-batches");
  return add_two(add_two(gradients[0], gradients[1]), add_two(gradients[2], gradients[3]));
}

void add_uses(const ModelSpec& model, LayerTensors& gradients) {
  std::map<std::string, at::Tensor> totals;
  for (const bool is_summing : {true, false}) {
    for (std::size_t l = gradients.size(); l-- > 0;) {
      for (std::size_t p = 0; p < gradients[l].size(); ++p) {
        const std::string& name = model.layers[l].parameters[p].tied;
        if (name.empty()) continue;
        at::Tensor& total = totals[name];
        if (is_summing) {
          total = total.defined() ? total + gradients[l][p] : gradients[l][p];
        } else {
          gradients[l][p] = total;
        }
      }
    }
  }
}

Differentiated differentiate_step(const ModelSpec& model, const LayerTensors& parameters,
                                  const std::vector<Samples>& micro_batches, std::uint64_t seed,
                                  Step step, Precision precision, const std::string& mask) {
  std::int64_t samples = 0;
  for (const Samples& some : micro_batches) samples += some.count();
  std::vector<LayerTensors> gradients;
  Differentiated whole;
  for (std::size_t m = 0; m < micro_batches.size(); ++m) {
    const double scale =
        static_cast<double>(micro_batches[m].count()) / static_cast<double>(samples);
    Differentiated one = differentiate(model, parameters, micro_batches[m],
                                       {seed, step, MicroBatchId{m}}, scale, precision, mask);
    whole.losses.insert(whole.losses.end(), one.losses.begin(), one.losses.end());
    gradients.push_back(std::move(one.gradients));
  }
  whole.gradients = add_four(gradients);
  return whole;
}

void descend(LayerTensors& parameters, const LayerTensors& gradients, double rate) {
  const c10::NoGradGuard no_grad;
  std::set<const void*> done;
  for (std::size_t l = 0; l < parameters.size(); ++l) {
    for (std::size_t p = 0; p < parameters[l].size(); ++p) {
      at::Tensor& weight = parameters[l][p];
      if (!gradients[l][p].defined() || !done.insert(weight.const_data_ptr()).second) continue;
      weight.copy_(weight - gradients[l][p] * rate);
    }
  }
}

}  // namespace frazil
