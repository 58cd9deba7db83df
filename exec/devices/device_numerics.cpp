#include "exec/devices/device_numerics.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "exec/devices/compute_device.h"
#include "exec/devices/workers.h"

namespace frazil {
namespace {

// Returns output and gradients of a layer of usual size, one after another.
at::Tensor run_layer(const at::Device& place) {
  constexpr std::int64_t kIn = 192;
  constexpr std::int64_t kOut = 768;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const auto draw = [&](at::IntArrayRef sizes) {
    return at::empty(sizes).normal_(0, 1, generator).to(place);
  };
  at::Tensor weight = draw({kOut, kIn}).set_requires_grad(true);
  at::Tensor bias = draw({kOut}).set_requires_grad(true);
  at::Tensor x = draw({8, 65, kIn}).set_requires_grad(true);
  const at::Tensor y = at::gelu(at::linear(at::layer_norm(x, {kIn}), weight, bias));
  const auto gradients = torch::autograd::grad({y.square().mean()}, {x, weight, bias});
  return at::cat({y.detach().flatten(), gradients[0].flatten(), gradients[1].flatten(),
                  gradients[2].flatten()});
}

}  // namespace

std::optional<std::string> check_numerics(const ComputeDevices& devices) {
  constexpr int kRepetitions = 2;
  std::vector<std::vector<at::Tensor>> results(static_cast<std::size_t>(devices.count()));
  Workers workers(devices.count());
  workers.run([&](DeviceId device) {
    const ComputeDevice& self = devices[device.index()];
    self.enter();
    for (int i = 0; i < kRepetitions; ++i) {
      results[device.index()].push_back(run_layer(self.place()).cpu());
    }
  });
  for (const std::vector<at::Tensor>& own : results) {
    if (!at::equal(own[0], own[1])) return "a layer computed twice differs on " + devices.text();
    if (!at::equal(own[0], results[0][0])) {
      return "a layer differs between devices, " + devices.text();
    }
  }
  return std::nullopt;
}

}  // namespace frazil
