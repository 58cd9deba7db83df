#pragma once
// StageRunner is the layers of one stage at work: forward, backward (whole or in two halves), what
// is kept per micro-batch, gradients handed out. Every layer has an autograd graph of its own
// (exec/models/layer_graph.h): memory goes layer by layer, each layer can be timed, and the bits do
// not depend on where stages are cut. Gradients that several readers send back are added in the
// order of their edges. Layers of a cached prefix run only if their features have not come.

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "exec/cache/prefix_features.h"
#include "exec/measuring/recorder.h"
#include "exec/models/boundary.h"
#include "exec/models/layer_graph.h"
#include "exec/run/execution_context.h"
#include "exec/run/stages/kept_weights.h"
#include "exec/state/layer_state.h"
#include "exec/tensors/samples.h"
#include "planner/plan/plan.h"

namespace frazil {

// The tensors that cross the border of a stage, by position in ModelSpec::edges.
using EdgeTensors = std::map<std::size_t, Tensors>;

// Takes one micro-batch's gradients of a layer.
using AddGradients = std::function<void(LayerId, MicroBatchId, Tensors)>;

struct StageWork {
  std::vector<LayerRange> layers;
  bool splits = false;      // some backward of the stage comes as I and W
  bool recomputes = false;  // activation checkpointing: F keeps inputs only, R runs F again
};

struct LayerLoss {
  LayerId layer;
  double value = 0;
  at::Tensor unread = {};  // in place of the value, where the host runs ahead of the device
};

class StageRunner {
 public:
  // The references must outlive the runner. `state` must hold every layer of the stage.
  StageRunner(const StageContext& context, StageWork work, AddGradients add_gradients);

  // The data that a micro-batch is run with. It must outlive the micro-batch's backward.
  struct Data {
    const Samples* samples = nullptr;
    double loss_scale = 1;  // multiplies every loss before the backward
    RandomKey key;
    PrefixFeatures features = {};  // cached outputs, whose layers do not run; on the host
    // In place of `loss_scale`, for layers whose losses count labels (LayerSpec::count_labels).
    std::map<LayerId, double> label_scales = {};
  };
  struct Forwarded {
    EdgeTensors outputs;  // of edges that leave the stage, detached
    std::vector<LayerLoss> losses;
    Tensors features = {};  // at the cached layers' boundary; empty if they came
    // Those of the micro-batch, of layers that train and keep some.
    std::vector<std::pair<LayerId, Tensors>> statistics = {};
  };
  // Runs F on what has come over the edges that enter the stage; keeps what the backward needs. A
  // layer that `weights` holds reads those instead of the parameters in its state.
  Forwarded forward(MicroBatchId micro_batch, const Data& data, EdgeTensors inputs,
                    const OldWeights& weights = {});
  // Runs R: the forward again, with the randomness of its F.
  void recompute(MicroBatchId micro_batch);

  // Run B, I (dgrad) or W (wgrad) with the gradients of edges that leave the stage. B and W hand
  // out weight gradients; B and I return the gradients of the edges that enter the stage and carry
  // one.
  EdgeTensors backward(MicroBatchId micro_batch, EdgeTensors gradients);
  EdgeTensors backward_input(MicroBatchId micro_batch, EdgeTensors gradients);
  // `gradients` are read only if the stage has no I.
  void backward_weight(MicroBatchId micro_batch, EdgeTensors gradients);
  // True if W finds what an I has left for it; then no gradient comes for W.
  bool has_halves(MicroBatchId micro_batch) const;
  // Runs B in two passes and times each, for measuring.
  EdgeTensors backward_apart(MicroBatchId micro_batch, EdgeTensors gradients);

  std::size_t in_flight() const { return saved_.size(); }

 private:
  // A layer's place among the layers of its stage.
  struct Place {
    LayerId layer;
    std::vector<std::size_t> incoming;  // edges
    std::vector<std::size_t> leaving;   // edges to other stages
    int readers = 0;                    // in this stage
  };
  struct SavedLayer {
    LayerGraph graph;
    std::int64_t stash = 0;  // saved activations in bytes, where memory is measured
  };
  struct SavedMicroBatch {
    Data data;
    std::vector<SavedLayer> layers;          // those with a backward, in forward order
    std::unique_ptr<const Samples> brought;  // the device's own copy of the samples, if any
    bool is_halved = false;                  // I has run
    EdgeTensors inputs;                      // kept if the stage recomputes
    std::int64_t kept_inputs = 0;            // bytes of the inputs that a backward needs
  };
  // The gradients of layers' outputs on their way, by layer and then by edge.
  using Arrived = std::map<LayerId, EdgeTensors>;

  Forwarded run_layers(SavedMicroBatch& saved, EdgeTensors inputs, bool keeps,
                       const OldWeights& weights);
  std::size_t put_features(const PrefixFeatures& features, std::vector<Tensors>& outputs,
                           std::vector<int>& readers) const;
  void hand_out(const Place& place, const Tensors& outputs, Forwarded& forwarded) const;
  LayerGraph::Call make_call(const Place& place, const Data& data, EdgeTensors& inputs,
                             std::vector<Tensors>& outputs, std::vector<int>& readers) const;
  LayerLoss add_loss(const Place& place, const Data& data, const Tensors& outputs,
                     LayerGraph* graph);
  std::int64_t count_kept(const SavedMicroBatch& saved) const;
  SavedMicroBatch take(MicroBatchId micro_batch);
  LayerGraph take_last(SavedMicroBatch& saved);
  Arrived sort_by_layer(EdgeTensors gradients) const;
  Tensors sum_gradients(LayerId layer, Arrived& arrived) const;
  void hand_on(LayerId layer, Tensors gradients, Arrived& arrived, EdgeTensors& leaving) const;
  void add_gradients(MicroBatchId micro_batch, LayerId layer, Tensors gradients);
  static int count_of(const Samples* samples) { return static_cast<int>(samples->count()); }
  void finish_phase(LayerId layer, LayerPhase phase, int samples, SteadyTime start);
  const Place& place_of(LayerId layer) const;

  const ModelSpec& model_;
  StageWork work_;
  const Activity& activity_;
  DeviceState& state_;
  AddGradients add_gradients_;
  Recorder& recorder_;
  const Measurement& measurement_;
  std::vector<LayerOutput> boundary_;  // of the cached layers
  std::vector<Place> places_;          // ascending
  std::vector<std::size_t> place_of_;  // by layer; places_.size(): idle or not in this stage
  bool has_backward_ = false;
  bool reads_samples_ = false;  // some layer reads inputs or labels
  std::map<MicroBatchId, SavedMicroBatch> saved_;
};

}  // namespace frazil
