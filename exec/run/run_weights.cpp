// The functions of Run that read its weights between two steps: evaluation, outputs, hash.
#include "exec/run/run.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>

#include "exec/tensors/finite.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Compares byte by byte: a NaN equals itself, and the two zeros differ.
bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const at::Tensor& x, const at::Tensor& y) {
        const at::Tensor here = x.cpu().contiguous();
        const at::Tensor there = y.cpu().contiguous();
        return here.sizes() == there.sizes() && here.nbytes() == there.nbytes() &&
               std::memcmp(here.const_data_ptr(), there.const_data_ptr(), here.nbytes()) == 0;
      });
}

std::vector<const Tensors*> point_at(const std::vector<Tensors>& layers) {
  std::vector<const Tensors*> pointers;
  pointers.reserve(layers.size());
  for (const Tensors& own : layers) pointers.push_back(&own);
  return pointers;
}

}  // namespace

// Returns the parameters of each layer's first holder, on device 0.
std::vector<Tensors> Run::gather_parameters() const {
  std::vector<Tensors> layers;
  for (const LayerState* state : first_holders(states_, static_cast<int>(model_.layers.size()))) {
    Tensors& own = layers.emplace_back(state->parameters);
    for (at::Tensor& parameter : own) parameter = parameter.to(devices_[0].place());
  }
  return layers;
}

std::vector<Tensors> Run::outputs(const Samples& samples) const {
  const c10::NoGradGuard no_grad;
  const std::vector<Tensors> here = gather_parameters();
  const auto brought = devices_[0].bring(samples);
  std::vector<Tensors> outputs =
      forward_model(model_, point_at(here), brought ? brought->inputs : samples.inputs);
  for (Tensors& of_layer : outputs) {
    for (at::Tensor& output : of_layer) output = output.cpu();
  }
  return outputs;
}

Run::Evaluation Run::evaluate(const Samples& samples, int micro_batch_size) const {
  const c10::NoGradGuard no_grad;
  const ComputeDevice& device = devices_[0];
  const std::vector<Tensors> here = gather_parameters();
  const std::vector<const Tensors*> parameters = point_at(here);
  Evaluation evaluation;
  for (std::int64_t first = 0; first < samples.count(); first += micro_batch_size) {
    const std::int64_t count = std::min<std::int64_t>(micro_batch_size, samples.count() - first);
    const Samples there = narrow(samples, first, count);
    const auto brought = device.bring(there);
    const Samples& some = brought ? *brought : there;
    const std::vector<Tensors> outputs = forward_model(model_, parameters, some.inputs);
    for (std::size_t l = 0; l < outputs.size(); ++l) {
      if (!model_.has_loss(LayerId{l})) continue;
      const at::Tensor loss = model_.layers[l].loss(outputs[l], some.labels);
      evaluation.loss += loss.item<double>() * static_cast<double>(count);
    }
    const at::Tensor& answers = outputs.back().at(0);
    if (answers.dim() != 2) continue;
    evaluation.accuracy +=
        static_cast<double>(answers.argmax(1).eq(some.labels).sum().item<std::int64_t>());
  }
  evaluation.loss /= static_cast<double>(samples.count());
  evaluation.accuracy /= static_cast<double>(samples.count());
  return evaluation;
}

std::vector<const Tensors*> Run::parameters() const {
  std::vector<const Tensors*> parameters;
  for (const LayerState* state : first_holders(states_, static_cast<int>(model_.layers.size()))) {
    parameters.push_back(&state->parameters);
  }
  return parameters;
}

std::optional<LayerId> Run::find_non_finite() const {
  const auto holders = first_holders(states_, static_cast<int>(model_.layers.size()));
  for (std::size_t l = 0; l < holders.size(); ++l) {
    const LayerState& state = *holders[l];
    if (!are_finite(state.parameters) || !are_finite(state.first_moment) ||
        !are_finite(state.second_moment)) {
      return LayerId{l};
    }
  }
  return std::nullopt;
}

std::uint64_t Run::weight_hash() const {
  const std::vector<const LayerState*> holders =
      first_holders(states_, static_cast<int>(model_.layers.size()));
  for (const DeviceState& state : states_) {
    for (const auto& [layer, replica] : state) {
      const LayerState& first = *holders[layer.index()];
      ENSURE(replica.updates == first.updates && same_bits(replica.parameters, first.parameters) &&
                 same_bits(replica.first_moment, first.first_moment) &&
                 same_bits(replica.second_moment, first.second_moment),
             "replicas hold the same bits");
    }
  }
  return hash_states(holders);
}

void Run::clear_gradient_sums() {
  for (DeviceState& state : states_) {
    for (auto& [layer, own] : state) own.gradient_sums.clear();
  }
}

}  // namespace frazil
