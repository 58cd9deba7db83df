#pragma once
// make_cnn() makes a convolutional network with skips in layers, all but the last of 3 x 3 kernels:
//   stem -> trunk -> (detour.0 -> detour.1 -> join) x units -> pool -> classifier (loss)
// A join adds what the layer before its detour has put out, which so has two readers; pool halves
// the sides and weighs channels by the mean of the stem's output, over a detached edge. Norms are
// over two groups of channels and have no parameters. Each layer is a block, but for the two of a
// detour, which are one: 4 + 2 units blocks, of which the classifier is the head. The samples'
// input is [n, channels, image, image] float32; the loss is the cross entropy of the logits [n,
// classes].

#include "exec/models/model.h"

namespace frazil {

struct CnnConfig {
  int image = 8;  // side, in pixels
  int channels = 1;
  int width = 16;   // channels of the layers
  int detour = 24;  // channels inside a detour
  int units = 1;
  int classes = 10;
  friend bool operator==(const CnnConfig&, const CnnConfig&) = default;
};

// Requires: counts of at least 1; an even width and an even detour. parse_model() refuses other
// models.
ModelSpec make_cnn(const CnnConfig& config);

}  // namespace frazil
