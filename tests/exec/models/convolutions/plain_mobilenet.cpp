#include "tests/exec/models/convolutions/plain_mobilenet.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace frazil {

PlainMobilenet::PlainMobilenet(const MobilenetShape& shape, bool is_supernet,
                               const ModelSpec& model, std::uint64_t seed)
    : shape_(shape), is_supernet_(is_supernet) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Tensors values = initial_parameters(model, LayerId{l}, seed);
    for (std::size_t p = 0; p < values.size(); ++p) {
      std::string name = model.layers[l].parameters[p].name;
      weights[name] = values[p].requires_grad_();
    }
  }
}

void PlainMobilenet::choose(const std::string& cell, std::size_t operation) {
  gates[cell].assign(kCellOperations.size(), 0);
  gates[cell][operation] = 1;
}

void PlainMobilenet::widen() {
  for (auto& [name, weight] : weights) weight = weight.detach().to(at::kDouble);
  for (auto& [name, statistic] : statistics) statistic = statistic.to(at::kDouble);
}

at::Tensor PlainMobilenet::convolve(const std::string& name, const at::Tensor& x,
                                    std::int64_t stride, bool training) {
  const at::Tensor& kernels = weights.at(name + ".weight");
  const std::int64_t groups = x.size(1) / kernels.size(1);
  const at::Tensor bias = shape_.batch_norm ? at::Tensor() : weights.at(name + ".bias");
  const at::Tensor convolved =
      at::conv2d(x, kernels, bias, stride, (kernels.size(2) - 1) / 2, 1, groups);
  if (!shape_.batch_norm) return convolved;
  at::Tensor& mean = statistics[name + ".norm.running_mean"];
  at::Tensor& variance = statistics[name + ".norm.running_var"];
  if (!mean.defined()) mean = at::zeros({kernels.size(0)}, kernels.options().requires_grad(false));
  if (!variance.defined()) variance = at::ones_like(mean);
  return at::batch_norm(convolved, weights.at(name + ".norm.weight"),
                        weights.at(name + ".norm.bias"), mean, variance, training, 0.1, 1e-5,
                        false);
}

at::Tensor PlainMobilenet::run_operation(const CellShape& cell, std::size_t operation,
                                         const at::Tensor& x, bool training) {
  std::string name = cell.name;
  if (is_supernet_) name += "." + std::string(kCellOperations.at(operation));
  const at::Tensor wide = at::hardtanh(convolve(name + ".expand", x, 1, training), 0, 6);
  const at::Tensor deep =
      at::hardtanh(convolve(name + ".depthwise", wide, cell.stride, training), 0, 6);
  return convolve(name + ".project", deep, 1, training);
}

at::Tensor PlainMobilenet::run_block(std::size_t block, at::Tensor x, bool training) {
  const std::vector<std::vector<CellShape>> stages = list_cells(shape_);
  if (block == stages.size()) {
    x = at::hardtanh(convolve("head", x, 1, training), 0, 6);
    return at::linear(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1),
                      weights.at("classifier.weight"), weights.at("classifier.bias"));
  }
  if (block == 0) x = at::hardtanh(convolve("stem", x, shape_.stem_stride, training), 0, 6);
  for (const CellShape& cell : stages[block]) {
    at::Tensor output;
    const std::vector<double>& own = gates.at(cell.name);
    for (std::size_t i = 0; i + 1 < own.size(); ++i) {  // zero adds nothing
      if (own[i] == 0) continue;
      at::Tensor one = run_operation(cell, i, x, training);
      if (own[i] != 1) one = one * own[i];
      output = output.defined() ? output + one : one;
    }
    if (!output.defined()) continue;
    x = cell.has_skip() ? x + output : output;
  }
  return x;
}

at::Tensor PlainMobilenet::classify(at::Tensor x, bool training) {
  for (std::size_t b = 0; b <= shape_.widths.size(); ++b) x = run_block(b, x, training);
  return x;
}

double PlainMobilenet::step(const std::vector<Samples>& micro_batches, double rate) {
  std::int64_t samples = 0;
  for (const Samples& some : micro_batches) samples += some.count();
  Tensors all;
  for (const auto& [name, weight] : weights) all.push_back(weight);
  std::vector<Tensors> gradients;
  double sum = 0;
  for (const Samples& some : micro_batches) {
    const double share = static_cast<double>(some.count()) / static_cast<double>(samples);
    const at::Tensor loss =
        at::cross_entropy_loss(classify(some.inputs.at(0), /*training=*/true), some.labels) * share;
    sum += loss.item<double>();
    gradients.push_back(torch::autograd::grad({loss}, all, {}, std::nullopt, false,
                                              /*allow_unused=*/true));
  }
  const c10::NoGradGuard no_grad;
  for (std::size_t w = 0; w < all.size(); ++w) {
    if (!gradients[0][w].defined()) continue;
    const at::Tensor gradient =
        (gradients[0][w] + gradients[1][w]) + (gradients[2][w] + gradients[3][w]);
    all[w].sub_(gradient * rate);
  }
  return sum;
}

}  // namespace frazil
