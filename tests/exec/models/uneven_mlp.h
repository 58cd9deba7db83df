#pragma once
// Seven layers of very different widths in six blocks, so that interior masks leave gaps of all
// sizes: layer l maps widths[l] to widths[l + 1]; layers 2 and 3 are one block, tanh and gelu take
// turns, the last layer has the loss. The samples' input is [n, widths[0]] float32.

#include <array>

#include "exec/models/model.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct UnevenMlpConfig {
  std::array<int, 8> widths = {12, 64, 6, 40, 4, 32, 16, 10};
};

ModelSpec make_uneven_mlp(const UnevenMlpConfig& config);
std::vector<Samples> make_uneven_mlp_samples(const UnevenMlpConfig& config, const StepShape& shape);

}  // namespace frazil
