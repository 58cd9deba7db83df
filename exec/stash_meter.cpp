#include "exec/stash_meter.h"

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/core/GradMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/function.h>

#include <memory>

namespace frazil {
namespace {

// Sums what libtorch's CPU allocator reports on this thread; frees count negative.
class LiveBytes final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*pointer*/, std::int64_t size, std::size_t /*total_allocated*/,
                         std::size_t /*total_reserved*/, c10::Device /*device*/) override {
    live += size;
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t live = 0;
};

std::int64_t count_bytes(const Tensors& tensors) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

// What a layer passes on as it came has not been allocated by it.
std::int64_t count_passed(const Tensors& outputs, const Tensors& inputs) {
  std::int64_t bytes = 0;
  for (const at::Tensor& output : outputs) {
    for (const at::Tensor& input : inputs) {
      if (output.is_alias_of(input)) bytes += static_cast<std::int64_t>(output.nbytes());
    }
  }
  return bytes;
}

}  // namespace

std::vector<Bytes> measure_stashes(const ModelSpec& model, const DeviceState& state,
                                   const Samples& micro_batch) {
  const c10::AutoGradMode grad_mode(true);
  std::vector<Bytes> stashes;
  std::vector<Tensors> outputs;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerId layer{l};
    Tensors read;
    for (const at::Tensor& tensor : read_inputs(model, layer, outputs, micro_batch.inputs)) {
      read.push_back(tensor.detach().set_requires_grad(tensor.is_floating_point()));
    }
    const auto meter = std::make_shared<LiveBytes>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    const LayerState& own = state.at(layer);
    outputs.push_back(model.layers[l].forward({layer, own.parameters, read, {}, true}));
    // Its graph alone is kept, as the executor does.
    std::shared_ptr<torch::autograd::Node> loss;
    if (model.has_loss(layer)) {
      loss = model.layers[l].loss(outputs.back(), micro_batch.labels).grad_fn();
    }
    const std::int64_t kept = meter->live - count_bytes(outputs.back()) +
                              count_passed(outputs.back(), read) + count_bytes(read);
    stashes.push_back(Bytes{kept});
    for (at::Tensor& output : outputs.back()) output = output.detach();
  }
  return stashes;
}

}  // namespace frazil
