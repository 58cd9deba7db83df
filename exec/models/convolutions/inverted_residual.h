#pragma once
// The cells of mobilenet and supernet (Sandler et al., "MobileNetV2: Inverted Residuals and Linear
// Bottlenecks", 2018). A cell's operation widens its input by a convolution of 1 x 1, convolves
// each channel alone, and narrows the result by another convolution of 1 x 1; a ReLU6, which cuts
// off above 6, stands behind the first two. A cell of stride 1 whose input is as wide as its output
// has a skip, which adds the input.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/models/convolutions/normed_convolution.h"

namespace frazil {

// A kernel of 3, 5 or 7 in each channel, over 3 or 6 times the channels of the input; or zero, for
// a cell that puts out what it reads, which only a cell with a skip may do.
enum class CellOperation {
  kKernel3Expand3,
  kKernel3Expand6,
  kKernel5Expand3,
  kKernel5Expand6,
  kKernel7Expand3,
  kKernel7Expand6,
  kZero
};

// The names by CellOperation.
inline constexpr std::array<std::string_view, 7> kCellOperations{"k3e3", "k3e6", "k5e3", "k5e6",
                                                                 "k7e3", "k7e6", "zero"};

struct CellShape {
  std::string name;      // as "stage1.0"
  std::int64_t in = 0;   // channels
  std::int64_t out = 0;  // channels
  std::int64_t stride = 1;
  std::int64_t side = 0;  // of the output
  bool has_norms = true;

  bool has_skip() const { return stride == 1 && in == out; }
};

// One operation of a cell, with its places in the cell's layer.
class InvertedResidual {
 public:
  // Adds parameters and statistics to the layer, under names that begin with `name`.
  InvertedResidual(const CellShape& cell, CellOperation operation, const std::string& name,
                   LayerSpec& layer);

  // Returns nothing for zero; else what the skip is added to.
  std::optional<at::Tensor> run(const LayerCall& call) const;

  // The operation's own parameters and statistics stand at [first, end) in the layer.
  struct Places {
    std::size_t first = 0;
    std::size_t end = 0;
  };
  Places parameters() const { return parameters_; }
  Places statistics() const { return statistics_; }

 private:
  std::vector<PlacedConvolution> convolutions_;
  Places parameters_;
  Places statistics_;
};

// Returns what the cell puts out, given what its operation does.
at::Tensor add_skip(const CellShape& cell, const at::Tensor& x,
                    const std::optional<at::Tensor>& output);

// Returns the cell's layer, still without parameters and forward.
LayerSpec begin_cell(const CellShape& cell, BlockId block);

}  // namespace frazil
