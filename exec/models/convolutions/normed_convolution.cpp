#include "exec/models/convolutions/normed_convolution.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

// These two are the defaults of PyTorch's BatchNorm2d.
constexpr double kBatchNormEpsilon = 1e-5;
constexpr double kBatchNormMomentum = 0.1;
// The statistics of a norm stand together: mean, variance, counter.
constexpr std::size_t kStatisticsOfANorm = 3;

// Only autograd's engine knows the gradients of this operation and of the norm.
at::Tensor convolve_placed(const LayerCall& call, const PlacedConvolution& placed,
                           const at::Tensor& x) {
  const Convolution& c = placed.convolution;
  const at::Tensor bias = c.has_norm ? at::Tensor() : call.parameters[placed.parameter + 1];
  const std::int64_t padding = c.kernel / 2;
  at::Tensor output = at::conv2d(x, call.parameters[placed.parameter], bias, {c.stride, c.stride},
                                 {padding, padding}, {1, 1}, c.groups);
  if (call.operations != nullptr) {
    std::vector<std::size_t> read{placed.parameter};
    if (!c.has_norm) read.push_back(placed.parameter + 1);
    call.operations->push_back({output, std::move(read), {}});
  }
  return output;
}

void hand_out_statistics(const LayerCall& call, std::size_t place, const at::Tensor& means,
                         const at::Tensor& variances) {
  if (call.batch_statistics == nullptr) return;
  Tensors& own = *call.batch_statistics;
  own.resize(std::max(own.size(), place + kStatisticsOfANorm));
  own[place] = means;
  own[place + 1] = variances;
}

// Training leaves the micro-batch's own statistics where the running ones would be: a momentum of 1
// leaves nothing of the zeros there.
at::Tensor normalize_placed(const LayerCall& call, const PlacedConvolution& placed,
                            const at::Tensor& x) {
  const std::size_t weight = placed.parameter + 1;
  const std::size_t mean = placed.statistic;
  const auto apply = [&](const at::Tensor& means, const at::Tensor& variances, double momentum) {
    return at::batch_norm(x, call.parameters[weight], call.parameters[weight + 1], means, variances,
                          call.training, momentum, kBatchNormEpsilon, /*cudnn_enabled=*/true);
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
  hand_out_statistics(call, mean, means, variances);
  return output;
}

}  // namespace

PlacedConvolution add_convolution(const Convolution& c, LayerSpec& layer) {
  PlacedConvolution placed{c, layer.parameters.size(), layer.statistics.size()};
  const std::int64_t read = c.in / c.groups * c.kernel * c.kernel;
  ParameterSpec kernels = linear_weight(c.name, c.out, read);
  kernels.shape = {c.out, c.in / c.groups, c.kernel, c.kernel};
  layer.parameters.push_back(std::move(kernels));
  if (!c.has_norm) {
    layer.parameters.push_back(linear_bias(c.name, c.out, read));
    return placed;
  }
  const std::string norm = c.name + ".norm";
  layer.parameters.push_back(constant(norm + ".weight", c.out, 1));
  layer.parameters.push_back(constant(norm + ".bias", c.out, 0));
  layer.statistics.push_back({norm + ".running_mean", at::zeros({c.out}), kBatchNormMomentum});
  layer.statistics.push_back({norm + ".running_var", at::ones({c.out}), kBatchNormMomentum});
  layer.statistics.push_back({norm + ".num_batches_tracked", at::zeros({}, at::kLong)});
  return placed;
}

at::Tensor apply_convolution(const LayerCall& call, const PlacedConvolution& placed,
                             const at::Tensor& x) {
  const at::Tensor convolved = convolve_placed(call, placed, x);
  return placed.convolution.has_norm ? normalize_placed(call, placed, convolved) : convolved;
}

}  // namespace frazil
