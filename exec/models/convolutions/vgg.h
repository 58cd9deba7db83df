#pragma once
// make_vgg() makes a VGG (Simonyan & Zisserman, "Very Deep Convolutional Networks for Large-Scale
// Image Recognition", 2015) of any size: stages of convolutions of 3 x 3 kernels, each with a ReLU,
// and of a pooling that takes the largest of 2 x 2 values, behind every stage but the last; then
// the mean over each channel and a linear map. With `separable` each convolution but the very
// first, which mixes the image's channels, is one of 3 x 3 in each channel alone and one of 1 x 1
// over all channels, each with a ReLU, as in MobileNet (Howard et al., "MobileNets: Efficient
// Convolutional Neural Networks for Mobile Vision Applications", 2017).
//
// A layer is a convolution, or such a pair, with what follows it; the last of a stage pools. The
// blocks are the stages, "stage1" and so on, and "classifier", which carries the loss, the cross
// entropy of the logits [n, classes]. Layers are a chain with one tensor between each two. What a
// stage puts out is [n, width, side, side]; the side is halved, rounded up, behind every stage but
// the last. So two of these networks with equal images and widths put out equal shapes stage by
// stage, whatever is inside them: one can teach the other, block by block.
//
// With `batch_norm` a norm stands between each convolution and its ReLU, which so has no bias
// (exec/models/convolutions/normed_convolution.h); its names are as
// "stage2.0.pointwise.norm.running_var". The samples' input is [n, channels, image, image] float32.

#include <vector>

#include "exec/models/model.h"

namespace frazil {

struct VggConfig {
  int image = 8;  // side, in pixels
  int channels = 1;
  std::vector<int> widths = {32, 64, 128};  // channels of the stages
  int convolutions = 2;                     // of a stage
  bool separable = false;
  bool batch_norm = true;
  int classes = 10;
  friend bool operator==(const VggConfig&, const VggConfig&) = default;
};

// Requires: counts of at least 1, and at least one width. parse_model() refuses other models. A
// forward in training throws InfeasibleError where a norm sees a single value of each channel.
ModelSpec make_vgg(const VggConfig& config);

}  // namespace frazil
