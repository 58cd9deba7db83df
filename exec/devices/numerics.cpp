#include "exec/devices/numerics.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "exec/devices/compute_device.h"
#include "exec/devices/workers.h"

namespace frazil {
namespace {

struct Shape {
  std::int64_t in;
  std::int64_t out;
};

bool rows_do_not_depend_on_position(const Shape& shape) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(1);
  const at::Tensor weight = at::empty({shape.out, shape.in}).normal_(0, 1, generator);
  const at::Tensor bias = at::empty({shape.out}).normal_(0, 1, generator);
  const at::Tensor x = at::empty({8, shape.in}).normal_(0, 1, generator);
  const at::Tensor whole = at::linear(x, weight, bias);
  const at::Tensor moved = at::linear(x.roll(3, 0).contiguous(), weight, bias).roll(-3, 0);
  return at::equal(whole, moved);
}

bool gradients_repeat(const Shape& shape) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(2);
  at::Tensor weight = at::empty({shape.out, shape.in}).normal_(0, 1, generator);
  weight.set_requires_grad(true);
  const at::Tensor x = at::empty({8, shape.in}).normal_(0, 1, generator);
  const auto gradient = [&] {
    const at::Tensor y = at::gelu(at::linear(x, weight)).sum();
    return torch::autograd::grad({y}, {weight})[0];
  };
  return at::equal(gradient(), gradient());
}

// Output and gradients of a layer of usual size, one after another.
at::Tensor run_layer(const at::Device& place) {
  constexpr Shape kShape{192, 768};
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const auto draw = [&](at::IntArrayRef sizes) {
    return at::empty(sizes).normal_(0, 1, generator).to(place);
  };
  at::Tensor weight = draw({kShape.out, kShape.in}).set_requires_grad(true);
  at::Tensor bias = draw({kShape.out}).set_requires_grad(true);
  at::Tensor x = draw({8, 65, kShape.in}).set_requires_grad(true);
  const at::Tensor y = at::gelu(at::linear(at::layer_norm(x, {kShape.in}), weight, bias));
  const auto gradients = torch::autograd::grad({y.square().mean()}, {x, weight, bias});
  return at::cat({y.detach().flatten(), gradients[0].flatten(), gradients[1].flatten(),
                  gradients[2].flatten()});
}

}  // namespace

void prepare_numerics() {
  constexpr int kKeepExisting = 0;
  __builtin_cpu_init();
  const bool is_intel = __builtin_cpu_is("intel") != 0;
  ::setenv("MKL_CBWR", is_intel ? "AVX2,STRICT" : "AVX2", kKeepExisting);
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeepExisting);
  (void)at::get_num_threads();
  at::set_num_threads(1);
}

void prepare_gpu_numerics() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);  // every at::empty() would be written
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setSDPUseMemEfficient(false);
  context.setSDPUseCuDNN(false);
}

std::optional<std::string> check_numerics() {
  constexpr std::array<Shape, 3> kShapes{{{64, 10}, {64, 192}, {192, 768}}};
  for (const Shape& shape : kShapes) {
    const std::string name =
        std::to_string(shape.in) + " to " + std::to_string(shape.out) + " features";
    if (!rows_do_not_depend_on_position(shape)) {
      return "a row of a linear layer (" + name + ") depends on its position on this machine";
    }
    if (!gradients_repeat(shape)) {
      return "gradients of a linear layer (" + name + ") do not repeat on this machine";
    }
  }
  return std::nullopt;
}

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
