#pragma once
// Trains by a plain loop in the calling thread: the executor's kernels without the executor, with
// the same layers and start values and one autograd graph per layer.

#include <cstdint>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "exec/state/layer_state.h"

namespace frazil {

class DirectTraining {
 public:
  DirectTraining(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed);

  // Runs one step over micro-batches of equal size and returns its loss. With `all_forwards_first`
  // the order is that of GPipe; else each backward follows its forward, as in 1F1B on one device.
  double step(const std::vector<Samples>& micro_batches, bool all_forwards_first,
              double learning_rate);

 private:
  struct SavedLayer {
    at::Tensor input;
    at::Tensor output;  // holds the graph; the scaled loss on the last layer
  };
  using SavedMicroBatch = std::vector<SavedLayer>;

  double forward(const Samples& samples, std::size_t parts, SavedMicroBatch& saved);
  void backward(SavedMicroBatch& saved);

  ModelSpec model_;
  OptimizerConfig optimizer_;
  std::vector<LayerState> states_;  // by layer
  std::vector<Tensors> sums_;       // sums of gradients, by layer
};

}  // namespace frazil
