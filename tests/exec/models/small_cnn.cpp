#include "tests/exec/models/small_cnn.h"

#include <ATen/ATen.h>

namespace frazil {
namespace {

constexpr int kKernel = 3;

ParameterSpec kernels(const std::string& name, std::int64_t out, std::int64_t in) {
  ParameterSpec spec = linear_weight(name, out, in * kKernel * kKernel);
  spec.shape = {out, in, kKernel, kKernel};
  return spec;
}

std::vector<ParameterSpec> convolution_parameters(const std::string& name, std::int64_t out,
                                                  std::int64_t in) {
  return {kernels(name, out, in), linear_bias(name, out, in * kKernel * kKernel)};
}

// Only autograd's engine knows the gradients of this operation.
at::Tensor convolve(const LayerCall& call, const at::Tensor& x, int stride = 1) {
  constexpr int kPadding = kKernel / 2;
  at::Tensor output =
      at::conv2d(x, call.parameters[0], call.parameters[1], {stride, stride}, {kPadding, kPadding});
  if (call.operations != nullptr) call.operations->push_back({output, {0, 1}, {}});
  return output;
}

at::Tensor normalize(const at::Tensor& x) { return at::group_norm(x, 2); }

struct LayerShape {
  std::string name;
  int block = 0;
  int in = 0;
  int out = 0;
  int size = 0;  // of the output
};

LayerSpec make_layer(const LayerShape& shape, std::function<Tensors(const LayerCall&)> forward) {
  const std::int64_t values = std::int64_t{shape.out} * shape.size * shape.size;
  return {.name = shape.name,
          .block = BlockId{shape.block},
          .parameters = convolution_parameters(shape.name, shape.out, shape.in),
          .forward = std::move(forward),
          .output_bytes_per_sample = {float_bytes(values)},
          .narrow_outputs = {0}};
}

Tensors forward_plain(const LayerCall& call) {
  return {at::gelu(normalize(convolve(call, call.inputs.at(0))))};
}

// The skip comes first: its edge begins at an earlier layer.
Tensors forward_join(const LayerCall& call) {
  return {at::relu(convolve(call, call.inputs.at(1)) + call.inputs.at(0))};
}

Tensors forward_pool(const LayerCall& call) {
  const at::Tensor weights = at::sigmoid(call.inputs.at(0).mean({2, 3}, /*keepdim=*/true));
  return {at::tanh(convolve(call, call.inputs.at(1) * weights, /*stride=*/2))};
}

LayerSpec make_classifier(const SmallCnnConfig& c, int size) {
  const std::int64_t values = std::int64_t{c.channels} * size * size;
  return {.name = "classifier",
          .block = BlockId{5},
          .parameters = {linear_weight("classifier", c.classes, values),
                         linear_bias("classifier", c.classes, values)},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {with.linear(call.inputs.at(0).flatten(1), 0, 1)};
          },
          .output_bytes_per_sample = {float_bytes(c.classes)},
          .narrow_outputs = {0},
          .loss =
              [](const Tensors& outputs, const at::Tensor& labels) {
                return at::cross_entropy_loss(outputs.at(0), labels);
              }};
}

ModelEdge connect(int from, int to, EdgeKind kind = EdgeKind::kGradient) {
  return {LayerId{from}, LayerId{to}, kind, {0}};
}

}  // namespace

ModelSpec make_small_cnn(const SmallCnnConfig& c) {
  const int pooled = (c.size + 1) / 2;
  ModelSpec model;
  model.name = "small-cnn";
  model.input_bytes_per_sample = float_bytes(std::int64_t{c.size} * c.size);
  model.blocks = {"stem", "trunk", "detour", "join", "pool", "classifier"};
  model.layers = {make_layer({"stem", 0, 1, c.channels, c.size}, forward_plain),
                  make_layer({"trunk", 1, c.channels, c.channels, c.size}, forward_plain),
                  make_layer({"detour.0", 2, c.channels, c.detour_channels, c.size}, forward_plain),
                  make_layer({"detour.1", 2, c.detour_channels, c.channels, c.size}, forward_plain),
                  make_layer({"join", 3, c.channels, c.channels, c.size}, forward_join),
                  make_layer({"pool", 4, c.channels, c.channels, pooled}, forward_pool),
                  make_classifier(c, pooled)};
  model.edges = {connect(0, 1), connect(0, 5, EdgeKind::kDetached),
                 connect(1, 2), connect(1, 4),
                 connect(2, 3), connect(3, 4),
                 connect(4, 5), connect(5, 6)};
  return model;
}

std::vector<Samples> make_small_cnn_samples(const SmallCnnConfig& c, const StepShape& shape) {
  return draw_micro_batches(shape, [&c](at::Generator& generator, std::int64_t n) {
    return Samples{{draw_normal({n, 1, c.size, c.size}, generator)},
                   draw_integers({n}, c.classes, generator)};
  });
}

}  // namespace frazil
