#pragma once
// Equal numbers of layers per stage, whatever the layers cost: the default of Megatron-LM, and
// DeepSpeed's `uniform`. Where the layers do not divide evenly, the first stages have one more.

#include <vector>

namespace frazil {

// Returns the first layer of stages 1, 2, ... There are fewer stages than `stages` where there are
// fewer layers. Requires: layers >= 1, stages >= 1.
std::vector<int> cut_uniformly(int layers, int stages);

}  // namespace frazil
