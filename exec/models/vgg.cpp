#include "exec/models/vgg.h"

#include <ATen/ATen.h>

#include <utility>

#include "exec/models/model_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kVggKernel = 3;
// These two are the defaults of PyTorch's BatchNorm2d.
constexpr double kVggEpsilon = 1e-5;
constexpr double kVggMomentum = 0.1;

// A convolution, with a norm or a bias, and a ReLU. Each group of channels is convolved alone.
struct VggConvolution {
  std::string name;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = kVggKernel;
  std::int64_t groups = 1;
};

struct VggLayer {
  std::string name;
  BlockId block;
  std::vector<VggConvolution> convolutions;
  bool has_norms = true;
  bool pools = false;
  std::int64_t side = 0;  // of the output

  // The parameters of a convolution stand together: weight, and of the norm weight and bias; or
  // weight and bias. So do the statistics of a norm: mean, variance, counter.
  std::size_t parameters_each() const { return has_norms ? 3 : 2; }
  static constexpr std::size_t kStatisticsEach = 3;
};

void add_vgg_convolution(const VggConvolution& c, bool has_norm, LayerSpec& layer) {
  const std::int64_t read = c.in / c.groups * c.kernel * c.kernel;
  ParameterSpec kernels = linear_weight(c.name, c.out, read);
  kernels.shape = {c.out, c.in / c.groups, c.kernel, c.kernel};
  layer.parameters.push_back(std::move(kernels));
  if (!has_norm) {
    layer.parameters.push_back(linear_bias(c.name, c.out, read));
    return;
  }
  const std::string norm = c.name + ".norm";
  layer.parameters.push_back(constant(norm + ".weight", c.out, 1));
  layer.parameters.push_back(constant(norm + ".bias", c.out, 0));
  layer.statistics.push_back({norm + ".running_mean", at::zeros({c.out}), kVggMomentum});
  layer.statistics.push_back({norm + ".running_var", at::ones({c.out}), kVggMomentum});
  layer.statistics.push_back({norm + ".num_batches_tracked", at::zeros({}, at::kLong)});
}

// Only autograd's engine knows the gradients of these two operations.
at::Tensor convolve_vgg(const LayerCall& call, const at::Tensor& x, const VggConvolution& c,
                        std::size_t weight, bool has_bias) {
  const at::Tensor bias = has_bias ? call.parameters[weight + 1] : at::Tensor();
  const std::int64_t padding = c.kernel / 2;
  at::Tensor output =
      at::conv2d(x, call.parameters[weight], bias, {1, 1}, {padding, padding}, {1, 1}, c.groups);
  if (call.operations != nullptr) {
    std::vector<std::size_t> read{weight};
    if (has_bias) read.push_back(weight + 1);
    call.operations->push_back({output, std::move(read), {}});
  }
  return output;
}

// Training leaves the micro-batch's own statistics where the running ones would be: a momentum of 1
// leaves nothing of the zeros there.
at::Tensor normalize_vgg(const LayerCall& call, const at::Tensor& x, std::size_t weight,
                         std::size_t mean) {
  const auto apply = [&](const at::Tensor& means, const at::Tensor& variances, double momentum) {
    return at::batch_norm(x, call.parameters[weight], call.parameters[weight + 1], means, variances,
                          call.training, momentum, kVggEpsilon, /*cudnn_enabled=*/true);
  };
  if (!call.training) return apply(call.statistics->at(mean), call.statistics->at(mean + 1), 0);
  if (x.numel() <= x.size(1)) {
    throw InfeasibleError("layer " + std::to_string(call.layer.value) +
                          " cannot train on a micro-batch of one sample: batch normalisation needs "
                          "more than one value of each channel");
  }
  const at::Tensor means = at::zeros({x.size(1)}, x.options().dtype(at::kFloat));
  const at::Tensor variances = at::zeros_like(means);
  at::Tensor output = apply(means, variances, 1);
  if (call.operations != nullptr) call.operations->push_back({output, {weight, weight + 1}, {}});
  if (call.batch_statistics != nullptr) {
    call.batch_statistics->insert(call.batch_statistics->end(), {means, variances, at::Tensor()});
  }
  return output;
}

Tensors forward_vgg(const VggLayer& layer, const LayerCall& call) {
  at::Tensor x = call.inputs.at(0);
  for (std::size_t i = 0; i < layer.convolutions.size(); ++i) {
    const std::size_t weight = i * layer.parameters_each();
    x = convolve_vgg(call, x, layer.convolutions[i], weight, !layer.has_norms);
    if (layer.has_norms) x = normalize_vgg(call, x, weight + 1, i * VggLayer::kStatisticsEach);
    x = at::relu(x);
  }
  if (layer.pools) x = at::max_pool2d(x, {2, 2}, {2, 2}, {0, 0}, {1, 1}, /*ceil_mode=*/true);
  return {x};
}

LayerSpec make_vgg_layer(VggLayer layer) {
  const std::int64_t values = layer.convolutions.back().out * layer.side * layer.side;
  LayerSpec spec{
      .name = layer.name,
      .block = layer.block,
      .parameters = {},
      .forward = {},
      .output_bytes_per_sample = {float_bytes(values)},
      .narrow_outputs = {0},
      .varies_in_training = layer.has_norms,
      .statistics = {},
      .mixes_samples = layer.has_norms ? SampleMixing::kInTraining : SampleMixing::kNever};
  for (const VggConvolution& convolution : layer.convolutions) {
    add_vgg_convolution(convolution, layer.has_norms, spec);
  }
  spec.forward = [layer = std::move(layer)](const LayerCall& call) {
    return forward_vgg(layer, call);
  };
  return spec;
}

// Returns what takes `in` channels to `out`: a convolution, or one in each channel and one over all
// of them.
std::vector<VggConvolution> list_convolutions(const std::string& name, std::int64_t in,
                                              std::int64_t out, bool separable) {
  if (!separable) return {{name, in, out}};
  return {{.name = name + ".depthwise", .in = in, .out = in, .groups = in},
          {.name = name + ".pointwise", .in = in, .out = out, .kernel = 1}};
}

LayerSpec make_vgg_classifier(const VggConfig& c) {
  return {.name = "classifier",
          .block = BlockId{c.widths.size()},
          .parameters = {linear_weight("classifier", c.classes, c.widths.back()),
                         linear_bias("classifier", c.classes, c.widths.back())},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {with.linear(call.inputs.at(0).mean({2, 3}), 0, 1)};
          },
          .output_bytes_per_sample = {float_bytes(c.classes)},
          .narrow_outputs = {0},
          .loss = class_loss};
}

std::string name_vgg(const VggConfig& c) {
  std::string name = c.separable ? "separable-vgg-i" : "vgg-i";
  name += std::to_string(c.image);
  for (const int width : c.widths) name += "-w" + std::to_string(width);
  name += "-k" + std::to_string(c.convolutions) + (c.batch_norm ? "-bn" : "");
  return name + "-c" + std::to_string(c.classes);
}

}  // namespace

ModelSpec make_vgg(const VggConfig& c) {
  ModelSpec model;
  model.name = name_vgg(c);
  model.input_bytes_per_sample = float_bytes(std::int64_t{c.channels} * c.image * c.image);
  std::int64_t in = c.channels;
  std::int64_t side = c.image;
  for (std::size_t s = 0; s < c.widths.size(); ++s) {
    model.blocks.push_back("stage" + std::to_string(s + 1));
    for (int k = 0; k < c.convolutions; ++k) {
      const std::string name = model.blocks.back() + "." + std::to_string(k);
      const bool is_first = model.layers.empty();
      const bool pools = k + 1 == c.convolutions && s + 1 < c.widths.size();
      if (pools) side = (side + 1) / 2;
      model.layers.push_back(make_vgg_layer(
          {.name = name,
           .block = BlockId{s},
           .convolutions = list_convolutions(name, in, c.widths[s], c.separable && !is_first),
           .has_norms = c.batch_norm,
           .pools = pools,
           .side = side}));
      in = c.widths[s];
    }
  }
  model.blocks.emplace_back("classifier");
  model.layers.push_back(make_vgg_classifier(c));
  model.edges = make_chain(model.layers);
  return model;
}

}  // namespace frazil
