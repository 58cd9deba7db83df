#include "tests/exec/models/distillation.h"

#include <ATen/ATen.h>

#include "exec/models/model_parts.h"

namespace frazil {
namespace {

std::vector<ParameterSpec> two_linears(const std::string& name, int out, int inner, int in) {
  return {linear_weight(name + ".up", inner, in), linear_bias(name + ".up", inner, in),
          linear_weight(name + ".down", out, inner), linear_bias(name + ".down", out, inner)};
}

at::Tensor run_two_linears(const LayerCall& call) {
  const ParametricOperations with(call.parameters, call.operations);
  return with.linear(at::gelu(with.linear(call.inputs.at(0), 0, 1)), 2, 3);
}

struct LayerSizes {
  int in = 0;
  int inner = 0;
  int out = 0;
};

LayerSpec make_layer(const std::string& name, int block, const LayerSizes& sizes) {
  return {
      .name = name,
      .block = BlockId{block},
      .parameters = two_linears(name, sizes.out, sizes.inner, sizes.in),
      .forward = [](const LayerCall& call) -> Tensors { return {at::tanh(run_two_linears(call))}; },
      .output_bytes_per_sample = {float_bytes(sizes.out)},
      .narrow_outputs = {0}};
}

LayerSpec make_head(const std::string& name, int block, const LayerSizes& sizes) {
  LayerSpec layer = make_layer(name, block, sizes);
  layer.forward = [](const LayerCall& call) -> Tensors { return {run_two_linears(call)}; };
  layer.loss = class_loss;
  return layer;
}

ModelSpec make_network(const std::string& name, const DistillationConfig& c, int inner,
                       const std::vector<std::string>& parts) {
  ModelSpec model;
  model.name = name;
  model.input_bytes_per_sample = float_bytes(c.dim);
  for (int b = 0; b < c.blocks; ++b) {
    const std::string block = std::to_string(b);
    model.blocks.push_back(block);
    if (b + 1 == c.blocks) {
      model.layers.push_back(make_head(block, b, {c.dim, inner, c.classes}));
      continue;
    }
    for (const std::string& part : parts) {
      model.layers.push_back(make_layer(block + part, b, {c.dim, inner, c.dim}));
    }
  }
  model.edges = make_chain(model.layers);
  return model;
}

}  // namespace

Distillation make_small_networks(const DistillationConfig& c) {
  Distillation networks{.teacher = make_network("teacher", c, c.teacher_inner, {""}),
                        .student = make_network("student", c, c.student_inner, {".a", ".b"}),
                        .blocks = {}};
  for (std::size_t b = 0; b < static_cast<std::size_t>(c.blocks); ++b) {
    const bool is_last = b + 1 == static_cast<std::size_t>(c.blocks);
    networks.blocks.push_back(
        {.name = std::to_string(b),
         .teacher_end = b + 1,
         .student_end = is_last ? networks.student.layers.size() : 2 * (b + 1),
         .loss = is_last ? BlockLoss::kCrossEntropy : BlockLoss::kMeanSquares});
  }
  return networks;
}

std::vector<Samples> make_distillation_samples(const DistillationConfig& c,
                                               const StepShape& shape) {
  return draw_micro_batches(shape, [&c](at::Generator& generator, std::int64_t n) {
    return Samples{{draw_normal({n, c.dim}, generator)}, draw_integers({n}, c.classes, generator)};
  });
}

}  // namespace frazil
