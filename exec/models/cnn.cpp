#include "exec/models/cnn.h"

#include <ATen/ATen.h>

#include "exec/models/model_parts.h"

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

LayerSpec make_classifier(const CnnConfig& c, int block, int size) {
  const std::int64_t values = std::int64_t{c.width} * size * size;
  return {.name = "classifier",
          .block = BlockId{block},
          .parameters = {linear_weight("classifier", c.classes, values),
                         linear_bias("classifier", c.classes, values)},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {with.linear(call.inputs.at(0).flatten(1), 0, 1)};
          },
          .output_bytes_per_sample = {float_bytes(c.classes)},
          .narrow_outputs = {0},
          .loss = class_loss};
}

ModelEdge connect(std::size_t from, std::size_t to, EdgeKind kind = EdgeKind::kGradient) {
  return {LayerId{from}, LayerId{to}, kind, {0}};
}

// Adds a unit: two layers of detour around the layer that is last so far, and one that joins both.
void add_unit(const CnnConfig& c, int unit, ModelSpec& model) {
  const std::string name = "unit" + std::to_string(unit + 1);
  const std::size_t before = model.layers.size() - 1;
  const int block = static_cast<int>(model.blocks.size());
  model.blocks.push_back(name + ".detour");
  model.blocks.push_back(name + ".join");
  model.layers.push_back(
      make_layer({name + ".detour.0", block, c.width, c.detour, c.image}, forward_plain));
  model.layers.push_back(
      make_layer({name + ".detour.1", block, c.detour, c.width, c.image}, forward_plain));
  model.layers.push_back(
      make_layer({name + ".join", block + 1, c.width, c.width, c.image}, forward_join));
  model.edges.push_back(connect(before, before + 1));
  model.edges.push_back(connect(before, before + 3));
  model.edges.push_back(connect(before + 1, before + 2));
  model.edges.push_back(connect(before + 2, before + 3));
}

}  // namespace

ModelSpec make_cnn(const CnnConfig& c) {
  const int pooled = (c.image + 1) / 2;
  ModelSpec model;
  model.name = "cnn-i" + std::to_string(c.image) + "-w" + std::to_string(c.width) + "-d" +
               std::to_string(c.detour) + "-u" + std::to_string(c.units) + "-c" +
               std::to_string(c.classes);
  model.input_bytes_per_sample = float_bytes(std::int64_t{c.channels} * c.image * c.image);
  model.blocks = {"stem", "trunk"};
  model.layers = {make_layer({"stem", 0, c.channels, c.width, c.image}, forward_plain),
                  make_layer({"trunk", 1, c.width, c.width, c.image}, forward_plain)};
  const std::size_t pool = 2 + 3 * static_cast<std::size_t>(c.units);
  model.edges = {connect(0, 1), connect(0, pool, EdgeKind::kDetached)};
  for (int unit = 0; unit < c.units; ++unit) add_unit(c, unit, model);
  const int block = static_cast<int>(model.blocks.size());
  model.blocks.emplace_back("pool");
  model.blocks.emplace_back("classifier");
  model.layers.push_back(make_layer({"pool", block, c.width, c.width, pooled}, forward_pool));
  model.layers.push_back(make_classifier(c, block + 1, pooled));
  model.edges.push_back(connect(pool - 1, pool));
  model.edges.push_back(connect(pool, pool + 1));
  return model;
}

}  // namespace frazil
