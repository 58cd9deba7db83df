#include "tests/exec/models/uneven_mlp.h"

#include <ATen/ATen.h>

namespace frazil {
namespace {

LayerSpec make_layer(const UnevenMlpConfig& c, std::size_t index) {
  const std::string name = "layer." + std::to_string(index);
  const bool is_last = index + 2 == c.widths.size();
  const std::int64_t in = c.widths.at(index);
  const std::int64_t out = c.widths.at(index + 1);
  LayerSpec layer{.name = name,
                  .block = BlockId{index < 3 ? index : index - 1},
                  .parameters = {linear_weight(name, out, in), linear_bias(name, out, in)},
                  .forward = [index, is_last](const LayerCall& call) -> Tensors {
                    const ParametricOperations with(call.parameters, call.operations);
                    const at::Tensor x = with.linear(call.inputs.at(0), 0, 1);
                    if (is_last) return {x};
                    return {index % 2 == 0 ? at::tanh(x) : at::gelu(x)};
                  },
                  .output_bytes_per_sample = {float_bytes(out)},
                  .narrow_outputs = {0}};
  if (is_last) {
    layer.loss = [](const Tensors& outputs, const at::Tensor& labels) {
      return at::cross_entropy_loss(outputs.at(0), labels);
    };
  }
  return layer;
}

}  // namespace

ModelSpec make_uneven_mlp(const UnevenMlpConfig& c) {
  ModelSpec model;
  model.name = "uneven-mlp";
  model.input_bytes_per_sample = float_bytes(c.widths.front());
  model.blocks = {"first", "second", "pair", "fifth", "sixth", "head"};
  for (std::size_t l = 0; l + 1 < c.widths.size(); ++l) model.layers.push_back(make_layer(c, l));
  model.edges = make_chain(model.layers);
  return model;
}

std::vector<Samples> make_uneven_mlp_samples(const UnevenMlpConfig& c, const StepShape& shape) {
  return draw_micro_batches(shape, [&c](at::Generator& generator, std::int64_t n) {
    return Samples{{draw_normal({n, c.widths.front()}, generator)},
                   draw_integers({n}, c.widths.back(), generator)};
  });
}

}  // namespace frazil
