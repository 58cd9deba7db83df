#pragma once
// make_mlp() makes a perceptron of several layers: layer l is a linear map to widths[l] values and
// an erf GELU; the last one, the head, gives the logits [n, classes] and carries the loss, their
// cross entropy. Each layer is a block. The samples' input is [n, channels, image, image] float32,
// read as one row of numbers.

#include <vector>

#include "exec/models/model.h"

namespace frazil {

struct MlpConfig {
  int image = 8;  // side, in pixels
  int channels = 1;
  std::vector<int> widths = {128, 128, 64};  // of the layers below the head
  int classes = 10;
  friend bool operator==(const MlpConfig&, const MlpConfig&) = default;
};

// Requires: counts of at least 1, and at least one width. parse_model() refuses other models.
ModelSpec make_mlp(const MlpConfig& config);

}  // namespace frazil
