#include "exec/measuring/stash_meter.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <memory>

#include "exec/tensors/tensor_bytes.h"

namespace frazil {
namespace {

bool is_among(const at::Tensor& tensor, const at::Tensor* begin, const at::Tensor* end) {
  return std::any_of(begin, end,
                     [&](const at::Tensor& other) { return tensor.is_alias_of(other); });
}

// Returns the bytes of outputs that the layer has allocated: not those of inputs passed on as they
// came, and once those of a value that is handed out several times.
std::int64_t count_made(const Tensors& outputs, const Tensors& inputs) {
  std::int64_t bytes = 0;
  for (const at::Tensor& output : outputs) {
    if (is_among(output, inputs.data(), inputs.data() + inputs.size())) continue;
    if (is_among(output, outputs.data(), &output)) continue;
    bytes += static_cast<std::int64_t>(output.nbytes());
  }
  return bytes;
}

// Reads inputs that require a gradient only where they come over a gradient edge, as in training. A
// kernel may keep more, or be another one, if the gradient of a mask or a sample is asked for.
Tensors read_as_in_training(const ModelSpec& model, LayerId layer,
                            const std::vector<Tensors>& outputs, const Tensors& inputs) {
  Tensors read;
  for (const at::Tensor& tensor : read_inputs(model, layer, outputs, inputs)) {
    read.push_back(tensor.detach());
  }
  std::size_t next = 0;
  for (const std::size_t e : model.edges_into(layer)) {
    const bool carries = model.edges[e].kind == EdgeKind::kGradient;
    for (std::size_t i = 0; i < model.edges[e].outputs.size(); ++i, ++next) {
      read[next].set_requires_grad(carries);
    }
  }
  return read;
}

}  // namespace

std::int64_t count_stash(const AllocationMeter& meter, const Tensors& inputs,
                         const Tensors& outputs) {
  // An output that is a view of parameters or constants is not among what is alive.
  const std::int64_t kept = meter.live_bytes() - count_made(outputs, inputs);
  return std::max<std::int64_t>(kept, 0) + count_bytes(inputs);
}

std::vector<Bytes> measure_stashes(const ModelSpec& model, const DeviceState& state,
                                   const Samples& micro_batch, bool frozen) {
  const c10::AutoGradMode grad_mode(true);
  std::vector<Bytes> stashes;
  std::vector<Tensors> outputs;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerId layer{l};
    const Tensors read = read_as_in_training(model, layer, outputs, micro_batch.inputs);
    const Tensors& statistics = state.at(layer).statistics;
    const AllocationMeter meter;
    std::vector<at::Tensor> parameters = state.at(layer).parameters;
    if (frozen) {
      for (at::Tensor& parameter : parameters) parameter = parameter.detach();
    }
    outputs.push_back(
        model.layers[l].forward({layer, parameters, read, {}, !frozen, nullptr, &statistics}));
    // The graph of the loss alone is kept, as the executor does.
    std::shared_ptr<torch::autograd::Node> loss;
    if (model.has_loss(layer)) {
      loss = model.layers[l].loss(outputs.back(), micro_batch.labels).grad_fn();
    }
    stashes.push_back(Bytes{count_stash(meter, read, outputs.back())});
    for (at::Tensor& output : outputs.back()) output = output.detach();
  }
  return stashes;
}

}  // namespace frazil
