#pragma once
// The layers of one stage at work: forward, backward, saved activations per micro-batch, gradients
// into the trees. Every layer has an autograd graph of its own, cut at its input: memory goes layer
// by layer, each layer can be timed, and the bits do not depend on where stages are cut.

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "exec/gradient_tree.h"
#include "exec/layer_state.h"
#include "exec/recorder.h"
#include "exec/step_program.h"

namespace frazil {

// Gradient trees of the layers a device holds.
using GradientTrees = std::map<LayerId, GradientTree>;

class StageRunner {
 public:
  // References must outlive the runner. `state` holds every layer of `layers`.
  StageRunner(const ModelSpec& model, LayerRange layers, const Activity& activity,
              DeviceState& state, GradientTrees& gradients, Recorder& recorder,
              const Measurement& measurement);

  // Runs F; keeps what the backward needs. Returns what the next stage reads, detached.
  at::Tensor forward(MicroBatchId micro_batch, const at::Tensor& input, const RandomKey& key);
  // On the stage with the loss, after its forward: the value of the scaled loss.
  double set_loss(MicroBatchId micro_batch, const at::Tensor& labels, double scale);
  // Runs B with the gradient of the stage's output (undefined on the stage with the loss); adds
  // weight gradients to the trees. Returns the gradient of the stage's input, undefined when no
  // layer before needs one.
  at::Tensor backward(MicroBatchId micro_batch, at::Tensor gradient, bool split);

  std::size_t in_flight() const { return saved_.size(); }

 private:
  struct SavedLayer {
    LayerId layer;
    at::Tensor input;   // a leaf; requires_grad iff its gradient is asked for
    at::Tensor output;  // holds the graph; the scaled loss on the layer with the loss
  };
  struct SavedMicroBatch {
    std::vector<SavedLayer> layers;  // those with a backward, in forward order
    at::Tensor output;               // of the last layer, undetached
    int samples = 0;
  };

  at::Tensor run_layer(LayerId layer, const at::Tensor& input, const RandomKey& key,
                       SavedMicroBatch& saved);
  at::Tensor run_backward(const SavedLayer& saved, const at::Tensor& gradient, int samples,
                          bool split, Tensors& weight_gradients);
  void finish_phase(LayerId layer, LayerPhase phase, int samples, SteadyTime start);

  const ModelSpec& model_;
  LayerRange layers_;
  const Activity& activity_;
  DeviceState& state_;
  GradientTrees& gradients_;
  Recorder& recorder_;
  const Measurement& measurement_;
  std::map<MicroBatchId, SavedMicroBatch> saved_;
};

}  // namespace frazil
