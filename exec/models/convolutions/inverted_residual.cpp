#include "exec/models/convolutions/inverted_residual.h"

#include <ATen/ATen.h>

#include "profiles/error.h"

namespace frazil {
namespace {

std::int64_t kernel_of(CellOperation operation) {
  switch (operation) {
    case CellOperation::kKernel3Expand3:
    case CellOperation::kKernel3Expand6:
      return 3;
    case CellOperation::kKernel5Expand3:
    case CellOperation::kKernel5Expand6:
      return 5;
    case CellOperation::kKernel7Expand3:
    case CellOperation::kKernel7Expand6:
      return 7;
    case CellOperation::kZero:
      break;
  }
  ENSURE(false, "an operation with a kernel");
}

std::int64_t expansion_of(CellOperation operation) {
  switch (operation) {
    case CellOperation::kKernel3Expand3:
    case CellOperation::kKernel5Expand3:
    case CellOperation::kKernel7Expand3:
      return 3;
    case CellOperation::kKernel3Expand6:
    case CellOperation::kKernel5Expand6:
    case CellOperation::kKernel7Expand6:
      return 6;
    case CellOperation::kZero:
      break;
  }
  ENSURE(false, "an operation that widens");
}

std::vector<Convolution> list_residual_convolutions(const CellShape& cell, CellOperation operation,
                                                    const std::string& name) {
  if (operation == CellOperation::kZero) return {};
  const std::int64_t wide = cell.in * expansion_of(operation);
  return {{.name = name + ".expand",
           .in = cell.in,
           .out = wide,
           .kernel = 1,
           .has_norm = cell.has_norms},
          {.name = name + ".depthwise",
           .in = wide,
           .out = wide,
           .kernel = kernel_of(operation),
           .groups = wide,
           .stride = cell.stride,
           .has_norm = cell.has_norms},
          {.name = name + ".project",
           .in = wide,
           .out = cell.out,
           .kernel = 1,
           .has_norm = cell.has_norms}};
}

}  // namespace

InvertedResidual::InvertedResidual(const CellShape& cell, CellOperation operation,
                                   const std::string& name, LayerSpec& layer)
    : parameters_{layer.parameters.size(), 0}, statistics_{layer.statistics.size(), 0} {
  for (const Convolution& one : list_residual_convolutions(cell, operation, name)) {
    convolutions_.push_back(add_convolution(one, layer));
  }
  parameters_.end = layer.parameters.size();
  statistics_.end = layer.statistics.size();
}

std::optional<at::Tensor> InvertedResidual::run(const LayerCall& call) const {
  if (convolutions_.empty()) return std::nullopt;
  at::Tensor x = call.inputs.at(0);
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    x = apply_convolution(call, convolutions_[i], x);
    if (i + 1 < convolutions_.size()) x = at::relu6(x);
  }
  return x;
}

// A view of the input is a tensor of its own in the autograd graph.
at::Tensor add_skip(const CellShape& cell, const at::Tensor& x,
                    const std::optional<at::Tensor>& output) {
  if (!output) return x.view_as(x);
  return cell.has_skip() ? x + *output : *output;
}

LayerSpec begin_cell(const CellShape& cell, BlockId block) {
  return {.name = cell.name,
          .block = block,
          .parameters = {},
          .forward = {},
          .output_bytes_per_sample = {float_bytes(cell.out * cell.side * cell.side)},
          .narrow_outputs = {0},
          .varies_in_training = cell.has_norms,
          .statistics = {},
          .mixes_samples = cell.has_norms ? SampleMixing::kInTraining : SampleMixing::kNever};
}

}  // namespace frazil
