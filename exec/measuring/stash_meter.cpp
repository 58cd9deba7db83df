#include "exec/measuring/stash_meter.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include <memory>

#include "exec/tensors/tensor_bytes.h"

namespace frazil {
namespace {

// Returns the bytes of outputs that are inputs passed on as they came: the layer has not allocated
// them.
std::int64_t count_passed(const Tensors& outputs, const Tensors& inputs) {
  std::int64_t bytes = 0;
  for (const at::Tensor& output : outputs) {
    for (const at::Tensor& input : inputs) {
      if (output.is_alias_of(input)) bytes += static_cast<std::int64_t>(output.nbytes());
    }
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
  return meter.live_bytes() - count_bytes(outputs) + count_passed(outputs, inputs) +
         count_bytes(inputs);
}

std::vector<Bytes> measure_stashes(const ModelSpec& model, const DeviceState& state,
                                   const Samples& micro_batch, bool frozen) {
  const c10::AutoGradMode grad_mode(true);
  std::vector<Bytes> stashes;
  std::vector<Tensors> outputs;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerId layer{l};
    const Tensors read = read_as_in_training(model, layer, outputs, micro_batch.inputs);
    const AllocationMeter meter;
    std::vector<at::Tensor> parameters = state.at(layer).parameters;
    if (frozen) {
      for (at::Tensor& parameter : parameters) parameter = parameter.detach();
    }
    outputs.push_back(model.layers[l].forward({layer, parameters, read, {}, !frozen}));
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
