#pragma once
// make_vit() makes a vision transformer in layers: pre-norm, class token, learned positions, erf
// GELU. Layer 0 embeds (block 0); blocks 1..N are two layers each, attention and MLP; the last
// layer is the final norm and the head and carries the loss, the cross entropy of its logits. One
// tensor [n, tokens, dim] goes from layer to layer.

#include "exec/models/model.h"

namespace frazil {

struct VitConfig {
  int image = 8;
  int channels = 1;
  int patch = 2;
  int dim = 64;
  int blocks = 6;
  int heads = 4;
  int classes = 10;
  double dropout = 0;  // after each attention and MLP projection
  friend bool operator==(const VitConfig&, const VitConfig&) = default;
};

ModelSpec make_vit(const VitConfig& config);

}  // namespace frazil
