#include "tests/exec/models/normed_cnn.h"

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <utility>

namespace frazil {
namespace {

constexpr int kNormedImage = 6;
constexpr int kNormedWidth = 4;
constexpr int kNormedClasses = 5;
constexpr double kNormedEpsilon = 1e-5;

using Eager = std::shared_ptr<LayerTensors>;

// A norm with its weight and bias from place `parameter` on, if it has some, and its mean, variance
// and counter from `statistic` on.
struct NormPlace {
  std::optional<std::size_t> parameter;
  std::size_t statistic = 0;
  double momentum = 0;
};

at::Tensor normalize(const LayerCall& call, const at::Tensor& x, const NormPlace& norm,
                     const Eager& eager) {
  at::Tensor weight;
  at::Tensor bias;
  if (norm.parameter) {
    weight = call.parameters[*norm.parameter];
    bias = call.parameters[*norm.parameter + 1];
  }
  const auto apply = [&](const at::Tensor& mean, const at::Tensor& variance, double momentum) {
    return at::batch_norm(x, weight, bias, mean, variance, call.training, momentum, kNormedEpsilon,
                          /*cudnn_enabled=*/false);
  };
  if (!call.training) {
    return apply(call.statistics->at(norm.statistic), call.statistics->at(norm.statistic + 1), 0);
  }
  if (eager) {
    Tensors& own = eager->at(call.layer.index());
    own[norm.statistic + 2].add_(1);
    return apply(own[norm.statistic], own[norm.statistic + 1], norm.momentum);
  }
  const at::Tensor mean = at::zeros({x.size(1)});
  const at::Tensor variance = at::zeros({x.size(1)});
  const at::Tensor output = apply(mean, variance, 1);
  if (call.operations != nullptr && norm.parameter) {
    call.operations->push_back({output, {*norm.parameter, *norm.parameter + 1}, {}});
  }
  if (call.batch_statistics != nullptr) {
    call.batch_statistics->insert(call.batch_statistics->end(), {mean, variance, at::Tensor()});
  }
  return output;
}

at::Tensor convolve_normed(const LayerCall& call, const at::Tensor& x, std::size_t parameter) {
  const at::Tensor output = at::conv2d(x, call.parameters[parameter], {}, 1, 1);
  if (call.operations != nullptr) call.operations->push_back({output, {parameter}, {}});
  return output;
}

void add_convolution(LayerSpec& layer, const std::string& name, std::int64_t in) {
  ParameterSpec kernels = linear_weight(name, kNormedWidth, in * 9);
  kernels.shape = {kNormedWidth, in, 3, 3};
  layer.parameters.push_back(kernels);
}

void add_norm(LayerSpec& layer, const std::string& name, double momentum, bool has_parameters) {
  if (has_parameters) {
    layer.parameters.push_back({name + ".weight", {kNormedWidth}, 0.5, 0});
    layer.parameters.push_back(constant(name + ".bias", kNormedWidth, 0.1));
  }
  layer.statistics.push_back({name + ".running_mean", at::full({kNormedWidth}, 0.25F), momentum});
  layer.statistics.push_back({name + ".running_var", at::full({kNormedWidth}, 1.5F), momentum});
  layer.statistics.push_back({name + ".num_batches_tracked", at::scalar_tensor(3, at::kLong), 0});
}

LayerSpec make_normed(const std::string& name, int block) {
  return {.name = name,
          .block = BlockId{block},
          .parameters = {},
          .forward = {},
          .output_bytes_per_sample = {float_bytes(kNormedWidth * kNormedImage * kNormedImage)},
          .varies_in_training = true,
          .statistics = {},
          .mixes_samples = SampleMixing::kInTraining};
}

LayerSpec make_stem(const Eager& eager) {
  LayerSpec layer = make_normed("stem", 0);
  add_convolution(layer, "stem.conv", 1);
  add_norm(layer, "stem.bn", 0.1, true);
  for (ParameterSpec& parameter : layer.parameters) parameter.trainable = false;
  layer.forward = [eager](const LayerCall& call) -> Tensors {
    const at::Tensor x = convolve_normed(call, call.inputs.at(0), 0);
    return {at::relu(normalize(call, x, {1, 0, 0.1}, eager))};
  };
  return layer;
}

LayerSpec make_pair(const std::string& name, int block, const Eager& eager) {
  LayerSpec layer = make_normed(name, block);
  for (const char* const half : {".0", ".1"}) {
    add_convolution(layer, name + half + ".conv", kNormedWidth);
    add_norm(layer, name + half + ".bn", half[1] == '0' ? 0.1 : 0.375, true);
  }
  layer.forward = [eager](const LayerCall& call) -> Tensors {
    const at::Tensor x = convolve_normed(call, call.inputs.at(0), 0);
    const at::Tensor hidden = at::relu(normalize(call, x, {1, 0, 0.1}, eager));
    return {at::relu(normalize(call, convolve_normed(call, hidden, 3), {4, 3, 0.375}, eager))};
  };
  return layer;
}

// The skip comes first: its edge begins at an earlier layer.
LayerSpec make_normed_join(const Eager& eager) {
  LayerSpec layer = make_normed("join", 3);
  add_convolution(layer, "join.conv", kNormedWidth);
  add_norm(layer, "join.bn", 0.01, true);
  layer.forward = [eager](const LayerCall& call) -> Tensors {
    const at::Tensor x = convolve_normed(call, call.inputs.at(1), 0);
    return {at::relu(normalize(call, x, {1, 0, 0.01}, eager) + call.inputs.at(0))};
  };
  return layer;
}

LayerSpec make_bare_norm(const Eager& eager) {
  LayerSpec layer = make_normed("norm", 4);
  add_norm(layer, "norm", 0.5, false);
  layer.forward = [eager](const LayerCall& call) -> Tensors {
    return {normalize(call, call.inputs.at(0), {std::nullopt, 0, 0.5}, eager)};
  };
  return layer;
}

LayerSpec make_normed_head() {
  constexpr std::int64_t kValues = kNormedWidth * kNormedImage * kNormedImage;
  return {.name = "head",
          .block = BlockId{5},
          .parameters = {linear_weight("head", kNormedClasses, kValues),
                         linear_bias("head", kNormedClasses, kValues)},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {with.linear(call.inputs.at(0).flatten(1), 0, 1)};
          },
          .output_bytes_per_sample = {float_bytes(kNormedClasses)},
          .loss =
              [](const Tensors& outputs, const at::Tensor& labels) {
                return at::cross_entropy_loss(outputs.at(0), labels);
              }};
}

ModelEdge connect_normed(std::size_t from, std::size_t to) {
  return {LayerId{from}, LayerId{to}, EdgeKind::kGradient, {0}};
}

}  // namespace

TestModel normed_cnn_model(const Eager& eager) {
  TestModel model{.spec = {}, .samples = {}, .mask = "111111"};
  model.spec.name = "normed-cnn";
  model.spec.blocks = {"stem", "unit0", "unit1", "join", "norm", "head"};
  model.spec.input_bytes_per_sample = float_bytes(kNormedImage * kNormedImage);
  model.spec.layers = {
      make_stem(eager),        make_pair("unit0", 1, eager), make_pair("unit1", 2, eager),
      make_normed_join(eager), make_bare_norm(eager),        make_normed_head()};
  model.spec.edges = {connect_normed(0, 1), connect_normed(1, 2), connect_normed(1, 3),
                      connect_normed(2, 3), connect_normed(3, 4), connect_normed(4, 5)};
  model.samples = [](const StepShape& shape) {
    return draw_micro_batches(shape, [](at::Generator& generator, std::int64_t n) {
      return Samples{{draw_normal({n, 1, kNormedImage, kNormedImage}, generator) + 1},
                     draw_integers({n}, kNormedClasses, generator)};
    });
  };
  return model;
}

LayerTensors start_statistics(const ModelSpec& model) {
  LayerTensors statistics;
  for (const LayerSpec& layer : model.layers) statistics.push_back(initial_statistics(layer));
  return statistics;
}

}  // namespace frazil
