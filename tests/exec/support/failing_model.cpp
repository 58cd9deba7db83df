#include "tests/exec/support/failing_model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "exec/devices/workers.h"
#include "tests/exec/support/live_allocations.h"
#include "tests/exec/support/rank_failures.h"
#include "tests/exec/support/small_vit.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

// An update fails in all micro-batches, so that the type of their sum is wrong as well.
bool is_failing(const RandomKey& key, FaultPlace place) {
  return key.step == kFailingStep &&
         (key.micro_batch.value == kFailingMicroBatch || place == FaultPlace::kUpdate);
}

// Takes the last row off the weight gradient of the operation, or makes it double.
Tensors spoil(Tensors gradients, FaultPlace place) {
  at::Tensor& first = gradients.front();
  if (place == FaultPlace::kReduction) first = first.narrow(0, 0, first.size(0) - 1);
  if (place == FaultPlace::kUpdate) first = first.to(at::kDouble);
  return gradients;
}

// The W of a layer is what its operations differentiate, if I and W come apart.
void watch_weights(ParametricOperationList& operations, MetTensors& met) {
  for (ParametricOperation& operation : operations) {
    if (!operation.differentiate) continue;
    operation.differentiate = [&met, inner = operation.differentiate](const at::Tensor& gradient) {
      Tensors found = inner(gradient);
      met.add({gradient});
      met.add(found);
      return found;
    };
  }
}

void fail_weights(ParametricOperation& operation, FaultPlace place,
                  const std::function<void()>& fault) {
  operation.differentiate = [place, fault,
                             inner = operation.differentiate](const at::Tensor& gradient) {
    if (place == FaultPlace::kBackwardWeight) fault();
    return spoil(inner(gradient), place);
  };
}

Tensors run_layer(const LayerSpec& layer, const LayerCall& call, bool fails, FaultPlace place,
                  const std::function<void()>& fault, MetTensors& met) {
  // The F of a stage that recomputes makes no graph, its R does.
  const bool is_recompute = place == FaultPlace::kRecompute && c10::GradMode::is_enabled();
  if (fails && (place == FaultPlace::kForward || is_recompute)) fault();
  Tensors outputs = layer.forward(call);
  met.add(call.parameters);
  met.add(call.inputs);
  met.add(outputs);
  if (call.operations != nullptr) watch_weights(*call.operations, met);
  if (fails && call.operations != nullptr) fail_weights(call.operations->back(), place, fault);
  if (fails && place == FaultPlace::kBackward) {
    outputs[0].register_hook([fault](const at::Tensor&) { fault(); });
  }
  return outputs;
}

std::string told(const char* what, std::int64_t before, std::int64_t after) {
  if (before == after) return {};
  return std::to_string(before) + " " + what + " became " + std::to_string(after) + "; ";
}

}  // namespace

void MetTensors::add(const Tensors& tensors) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const at::Tensor& tensor : tensors) met_.emplace_back(tensor.getIntrusivePtr());
}

bool MetTensors::all_gone() const {
  return std::all_of(met_.begin(), met_.end(), [](const auto& one) { return one.expired(); });
}

ModelSpec make_failing(FaultPlace place, const std::function<void()>& fault, MetTensors& met) {
  ModelSpec model = make_vit(small_config());
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    LayerSpec& layer = model.layers[l];
    layer.forward = [=, &met, inner = layer](const LayerCall& call) {
      const bool fails = l == kFailingLayer && is_failing(call.key, place);
      return run_layer(inner, call, fails, place, fault, met);
    };
  }
  LayerSpec& head = model.layers.back();
  // A loss is told no key, so its fault follows the forward of its micro-batch. (One replica alone
  // asks.)
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  head.forward = [fails, place, inner = head.forward](const LayerCall& call) {
    *fails = is_failing(call.key, place);
    return inner(call);
  };
  head.loss = [=, inner = head.loss](const Tensors& outputs, const at::Tensor& labels) {
    if (*fails && place == FaultPlace::kLoss) fault();
    return inner(outputs, labels);
  };
  return model;
}

Surroundings::Surroundings() {
  start_symbolizer();
  {
    Workers(1).run([](DeviceId) {});
  }  // makes what torch and a sanitizer keep
  threads_ = count_threads();
  files_ = count_entries("/proc/self/fd");
  allocations_ = count_live_allocations();
}

std::string Surroundings::change() const {
  threads_come_down_to(threads_);
  return told("threads", threads_, count_entries("/proc/self/task")) +
         told("files", files_, count_entries("/proc/self/fd")) +
         told("tensors", allocations_, count_live_allocations());
}

}  // namespace frazil
