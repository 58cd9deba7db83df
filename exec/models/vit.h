#pragma once
// make_vit() makes a vision transformer in layers: pre-norm, class token, learned positions, erf
// GELU, MLPs of width 4 dim. Layer 0 embeds (block 0); with N = VitConfig::blocks, blocks 1..N are
// two layers each, attention and MLP; the last layer (block N + 1) is the final norm and the head,
// over the class token alone, and carries the loss, the cross entropy of its logits [n, classes].
// One tensor [n, tokens, dim] goes from layer to layer; tokens = (image / patch)^2 + 1.

#include "exec/models/model.h"

namespace frazil {

struct VitConfig {
  int image = 8;  // side, in pixels
  int channels = 1;
  int patch = 2;   // side, in pixels
  int dim = 64;    // values of a token
  int blocks = 6;  // transformer blocks; embedding and head are blocks besides
  int heads = 4;
  int classes = 10;
  double dropout = 0;  // rate in training, after each attention's and each MLP's last projection
  friend bool operator==(const VitConfig&, const VitConfig&) = default;
};

// Requires: counts of at least 1, an image that patches tile, a dim that heads divide.
// parse_run_config() refuses other models.
ModelSpec make_vit(const VitConfig& config);

}  // namespace frazil
