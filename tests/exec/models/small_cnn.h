#pragma once
// A small convolutional network with a long skip, in seven layers and six blocks:
//   0 stem -> 1 trunk -> 2, 3 detour -> 4 join -> 5 pool -> 6 classifier (loss)
// Layer 4 adds what layer 1 has put out, which so has two readers; layer 5 weighs channels by the
// mean of the stem's output, over a detached edge. Norms are over groups of channels, without
// parameters. The samples' input is [n, 1, size, size] float32.

#include "exec/models/model.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct SmallCnnConfig {
  int size = 6;
  int channels = 4;
  int detour_channels = 6;
  int classes = 5;
};

ModelSpec make_small_cnn(const SmallCnnConfig& config);
std::vector<Samples> make_small_cnn_samples(const SmallCnnConfig& config, const StepShape& shape);

}  // namespace frazil
