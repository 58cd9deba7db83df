#include "exec/models/layer_graph.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "exec/models/linear_without_bias.h"

namespace frazil {
namespace {

ParameterSpec named(const std::string& name) { return linear_weight(name, 3, 3); }

// The model is one layer with two outputs, each by a linear map of its own.
ModelSpec two_headed() {
  LayerSpec layer{.name = "heads",
                  .block = BlockId{0},
                  .parameters = {named("a"), named("b")},
                  .forward =
                      [](const LayerCall& call) {
                        return Tensors{linear_without_bias(call, call.inputs[0], 0),
                                       linear_without_bias(call, call.inputs[0], 1)};
                      },
                  .output_bytes_per_sample = {Bytes{12}, Bytes{12}}};
  return {.name = "two heads",
          .blocks = {"block"},
          .layers = {layer},
          .edges = {},
          .input_bytes_per_sample = Bytes{12}};
}

LayerGraph make_graph(const ModelSpec& model, const Tensors& parameters, bool splits) {
  const LayerActivity activity{
      .active = true, .input_gradient = true, .weight_gradient = true, .trains = true};
  return {model,
          LayerId{0},
          parameters,
          activity,
          {.inputs = {at::ones({2, 3})}, .carries = {true}, .key = {}, .splits = splits}};
}

TEST(LayerGraph, AnOperationBehindAnOutputWithoutAGradientHasZerosInBothHalvesAsInOne) {
  const ModelSpec model = two_headed();
  Tensors parameters = initial_parameters(model, LayerId{0}, 1);
  for (at::Tensor& parameter : parameters) parameter.set_requires_grad(true);
  const Tensors gradients{at::full({2, 3}, 0.5), at::Tensor()};
  const LayerGraph::Gradients whole =
      make_graph(model, parameters, /*splits=*/false).backward(gradients);
  LayerGraph split = make_graph(model, parameters, /*splits=*/true);
  const Tensors of_inputs = split.backward_input(gradients);
  const Tensors of_weights = split.backward_weight();
  EXPECT_TRUE(at::equal(of_inputs.at(0), whole.inputs.at(0)));
  ASSERT_EQ(of_weights.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(of_weights[i], whole.weights[i])) << i;
  EXPECT_TRUE(at::equal(of_weights[1], at::zeros({3, 3})));
}

}  // namespace
}  // namespace frazil
