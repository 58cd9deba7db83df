#pragma once
// A convolution with what stands behind it in vgg and mobilenet: a norm over the batch, or a bias.
// The norm is PyTorch's BatchNorm2d: a mean and a variance that training folds in with a momentum
// of 0.1 (the variance without bias), and an epsilon of 1e-5. Names are those of a module that has
// its norm as "norm": "stage1.0.weight", "stage1.0.norm.weight", "stage1.0.norm.running_var".

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "exec/models/model.h"

namespace frazil {

struct Convolution {
  std::string name;
  std::int64_t in = 0;      // channels
  std::int64_t out = 0;     // channels
  std::int64_t kernel = 3;  // odd; zeros around the image let a stride of 1 keep its side
  std::int64_t groups = 1;  // each group of channels is convolved alone
  std::int64_t stride = 1;
  bool has_norm = true;  // false: a bias
};

// A convolution whose parameters and statistics stand in its layer from these places on.
struct PlacedConvolution {
  Convolution convolution;
  std::size_t parameter = 0;
  std::size_t statistic = 0;
};

// Adds the parameters of the convolution to the layer, and its norm's statistics.
PlacedConvolution add_convolution(const Convolution& convolution, LayerSpec& layer);

// Runs it on x, [n, in, side, side]; the side is divided by the stride and rounded up. Training
// normalises by the micro-batch's own statistics, and hands them out at their places in
// LayerCall::batch_statistics. Throws InfeasibleError where a norm in training sees a single value
// of each channel.
at::Tensor apply_convolution(const LayerCall& call, const PlacedConvolution& placed,
                             const at::Tensor& x);

}  // namespace frazil
