#include "exec/devices/numerics.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cstdlib>
#include <vector>

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

// Calls every function that ATen hands to MKL's vector math (ATen/cpu/vml.h), which looks for its
// kernels at the first call of a process: of two threads in that call one may get less precise ones
// (pytorch/pytorch#188792).
void settle_vector_math() {
  using Function = at::Tensor (*)(const at::Tensor&);
  constexpr std::array<Function, 16> kFunctions{
      at::acos, at::asin,  at::atan, at::cos, at::erf,  at::erfc, at::erfinv, at::exp,
      at::log,  at::log10, at::log2, at::sin, at::sqrt, at::tan,  at::tanh,   at::trunc};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor half = at::full({1}, 0.5, type);
    for (const Function function : kFunctions) (void)function(half);
  }
}

}  // namespace

void prepare_numerics(const std::string& branch) {
  constexpr int kKeepExisting = 0;
  ::setenv("MKL_CBWR", branch.c_str(), kKeepExisting);
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", kKeepExisting);
  (void)at::get_num_threads();
  at::set_num_threads(1);
  settle_vector_math();
}

void prepare_gpu_numerics() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);  // filling would write every at::empty()
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

}  // namespace frazil
