#pragma once
// Equal numbers of layers per stage, whatever they cost: the default of Megatron-LM and of
// DeepSpeed's `uniform`. Where the layers do not divide, the first stages have one more.

#include <vector>

namespace frazil {

// First layer of stages 1, 2, ... Fewer stages than `stages` where there are fewer layers.
// Requires: layers >= 1, stages >= 1.
std::vector<int> cut_uniformly(int layers, int stages);

}  // namespace frazil
