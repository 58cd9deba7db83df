#pragma once
// make_mobilenet() makes a MobileNetV2-like network (Sandler et al., 2018): a convolution of 3 x 3
// ("stem"), stages of cells (exec/models/convolutions/inverted_residual.h), a convolution of 1 x 1
// ("head"), the mean over each channel and a linear map ("classifier"). ReLU6 follows the stem and
// the head. The first cell of a stage has the stage's stride. Each cell has an operation of its
// own, by default that of the paper, a kernel of 3 over 6 times the channels.
//
// A layer is the stem, a cell, the head or the classifier. The blocks are the stages, "stage1" and
// so on, of which the first has the stem, and "classifier", which has the head and carries the
// loss, the cross entropy of the logits [n, classes]. Layers are a chain with one tensor between
// each two. Stage i puts out [n, widths[i], side, side], the side being divided by the strides so
// far, each time rounded up: so networks of equal widths and strides, whatever the number of their
// cells and what is in them, and a supernet too, can teach each other block by block.
//
// With `batch_norm` a norm stands behind each convolution
// (exec/models/convolutions/normed_convolution.h); else convolutions have a bias. The samples'
// input is [n, channels, image, image] float32.
//
// The networks of Pipe-BD's search have widths 24, 32, 64, 96, 160, 320, cells 2, 4, 4, 4, 4, 1,
// strides 2, 2, 2, 1, 2, 1, a stem of stride 2 and a head of 1280 channels, for images of 224
// pixels; images of 8 pixels take a stem of stride 1 and strides 1, 1, 2, 1, 2, 1.

#include <functional>
#include <string>
#include <vector>

#include "exec/models/convolutions/inverted_residual.h"
#include "exec/models/model.h"

namespace frazil {

// The members that mobilenet and supernet share.
struct MobilenetShape {
  int image = 8;  // side, in pixels
  int channels = 1;
  int stem = 16;  // channels of the stem
  int stem_stride = 1;
  std::vector<int> widths = {16, 24, 32};  // channels of the stages
  std::vector<int> cells = {2, 2, 2};      // of each stage
  std::vector<int> strides = {1, 2, 2};    // of the first cell of each stage
  int head = 64;                           // channels of the head
  bool batch_norm = true;
  int classes = 10;
  friend bool operator==(const MobilenetShape&, const MobilenetShape&) = default;
};

struct MobilenetConfig {
  MobilenetShape shape;
  // By stage and cell; empty: kKernel3Expand6 in all cells.
  std::vector<std::vector<CellOperation>> operations = {};
  friend bool operator==(const MobilenetConfig&, const MobilenetConfig&) = default;
};

// Returns the cells of each stage. Requires: lists of equal lengths, of at least one number each;
// counts of at least 1.
std::vector<std::vector<CellShape>> list_cells(const MobilenetShape& shape);

// Returns the network whose cells `make_cell` makes, given the stage and the place in it. Its name
// is `name` and the shape's numbers.
ModelSpec make_stages(const MobilenetShape& shape, const std::string& name,
                      const std::function<LayerSpec(const CellShape&, BlockId, std::size_t)>& make);

// Requires: as list_cells(), and zero for no cell without a skip. parse_model() refuses other
// models. A forward in training throws InfeasibleError where a norm sees a single value of each
// channel.
ModelSpec make_mobilenet(const MobilenetConfig& config);

}  // namespace frazil
