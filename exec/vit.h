#pragma once
// The layered vision transformer. Layer 0 embeds (block 0); blocks 1..N are two layers each,
// attention and MLP; the last layer is final norm and head and carries the loss, the cross entropy
// of its logits. Between layers goes one tensor [n, tokens, dim].

#include "exec/model.h"
#include "exec/run_config.h"

namespace frazil {

ModelSpec make_vit(const VitConfig& config);

}  // namespace frazil
