#include "exec/stash_meter.h"

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/core/GradMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>

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

}  // namespace

Bytes measure_stash(const ModelSpec& model, LayerId layer, const LayerState& state,
                    const at::Tensor& input) {
  const c10::AutoGradMode grad_mode(true);
  const auto meter = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  const at::Tensor x = input.detach().set_requires_grad(true);
  const at::Tensor output = forward_layer(model, layer, state.parameters, x, {}, true);
  const auto output_bytes = static_cast<std::int64_t>(output.nbytes());
  const auto input_bytes = static_cast<std::int64_t>(input.nbytes());
  return Bytes{meter->live - output_bytes + input_bytes};
}

}  // namespace frazil
