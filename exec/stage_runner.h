#pragma once
// The layers of one stage at work: forward, backward, whole or in two halves, what is kept per
// micro-batch, gradients into the trees. Every layer has an autograd graph of its own
// (exec/layer_graph.h): memory goes layer by layer, each layer can be timed, and the bits do not
// depend on where stages are cut.

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "exec/gradient_tree.h"
#include "exec/layer_graph.h"
#include "exec/layer_state.h"
#include "exec/recorder.h"
#include "exec/step_program.h"

namespace frazil {

// Gradient trees of the layers a device holds.
using GradientTrees = std::map<LayerId, GradientTree>;

// Parameters before the last update, by layer.
using OldWeights = std::map<LayerId, Tensors>;

struct StageWork {
  LayerRange layers;
  bool splits = false;      // some backward of it comes as I and W
  bool recomputes = false;  // F keeps the input alone, R runs it again
};

class StageRunner {
 public:
  // References must outlive the runner. `state` holds every layer of the stage.
  StageRunner(const ModelSpec& model, StageWork work, const Activity& activity, DeviceState& state,
              GradientTrees& gradients, Recorder& recorder, const Measurement& measurement);

  // Runs F; keeps what the backward needs. Returns what the next stage reads, detached. `weights`
  // are read instead of the state's own, where they hold a layer.
  at::Tensor forward(MicroBatchId micro_batch, const at::Tensor& input, const RandomKey& key,
                     const OldWeights& weights = {});
  // Runs R, with the randomness of its F.
  void recompute(MicroBatchId micro_batch);
  // On the stage with the loss, after its forward and again after R: the value of the scaled loss.
  double set_loss(MicroBatchId micro_batch, const at::Tensor& labels, double scale);

  // Run B, I or W with the gradient of the stage's output (undefined on the stage with the loss);
  // W adds weight gradients to the trees. B and I return the gradient of the stage's input,
  // undefined when no layer before needs one.
  at::Tensor backward(MicroBatchId micro_batch, at::Tensor gradient);
  at::Tensor backward_input(MicroBatchId micro_batch, at::Tensor gradient);
  // `gradient` is read where the stage has no I.
  void backward_weight(MicroBatchId micro_batch, const at::Tensor& gradient);
  // Whether W finds what an I has left it, and so no gradient comes for it.
  bool has_halves(MicroBatchId micro_batch) const;
  // For measuring: B in two passes, each timed.
  at::Tensor backward_apart(MicroBatchId micro_batch, at::Tensor gradient);

  std::size_t in_flight() const { return saved_.size(); }

 private:
  struct SavedMicroBatch {
    std::vector<LayerGraph> layers;  // those with a backward, in forward order
    at::Tensor output;               // of the last layer, undetached
    int samples = 0;
    bool is_halved = false;  // I has run
    at::Tensor input;        // where the stage recomputes
    RandomKey key;
  };

  void run_layers(SavedMicroBatch& saved, const at::Tensor& input, const RandomKey& key, bool keeps,
                  const OldWeights& weights);
  SavedMicroBatch take(MicroBatchId micro_batch);
  void add_gradients(MicroBatchId micro_batch, LayerId layer, Tensors gradients);
  void finish_phase(LayerId layer, LayerPhase phase, int samples, SteadyTime start);
  bool has_backward() const;

  const ModelSpec& model_;
  StageWork work_;
  const Activity& activity_;
  DeviceState& state_;
  GradientTrees& gradients_;
  Recorder& recorder_;
  const Measurement& measurement_;
  std::map<MicroBatchId, SavedMicroBatch> saved_;
};

}  // namespace frazil
