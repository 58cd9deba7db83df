#pragma once
// The executor of one device: performs its list of actions with one switch, the twin of the
// planner's lowering, under the exactness rules of the design (same bits for every synchronous plan
// with equal micro-batches). Runs in its device's thread.

#include <map>
#include <memory>
#include <vector>

#include "exec/communicator.h"
#include "exec/dataset.h"
#include "exec/stage_runner.h"
#include "exec/step_program.h"

namespace frazil {

// What one step works on; equal for all devices.
struct StepInput {
  Step step = 0;
  std::uint64_t seed = 0;
  double learning_rate = 0;
  const std::vector<Samples>* micro_batches = nullptr;  // by global micro-batch
  int samples = 0;                                      // in all of them
};

class Executor {
 public:
  // References must outlive the executor.
  Executor(const ModelSpec& model, const OptimizerConfig& optimizer, const StepProgram& program,
           DeviceId device, DeviceState& state, Communicator& communicator, Recorder& recorder,
           const Measurement& measurement);

  // One training step. Returns the scaled losses of the micro-batches this device saw the loss of.
  // Throws PeerLost, or InfeasibleError naming an action kind it cannot perform.
  std::vector<std::pair<MicroBatchId, double>> run_step(const StepInput& input);

 private:
  // What waits at the entry of a stage: an activation, or the gradient of its output.
  struct Entry {
    PipelineId pipeline;
    StageId stage;
    MicroBatchId micro_batch;
    bool gradient = false;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  void perform(const Action& action);
  void compute(const Action& action);
  void forward(const Action& action);
  double set_loss(const Action& action);
  void recompute(const Action& action);
  void backward(const Action& action);
  void backward_weight(const Action& action);
  at::Tensor take_gradient(const Action& action);
  void send(const Action& action, bool gradient);
  void receive(const Action& action, bool gradient);
  void reduce();
  void reduce_group(GradientTrees::iterator first, GradientTrees::iterator end,
                    const std::vector<LayerOwner>& owners);
  void exchange_norms();
  void update(const Action& action);
  void update_weights(LayerId layer, Tensors gradients);
  void note_reads(const Action& update);
  const OldWeights& choose_weights(const Action& forward) const;
  int count_samples(const Action& action) const;
  StageRunner& runner(const Action& action);
  Tag tag_of(const Entry& entry) const;
  at::Tensor take(const Entry& entry);

  const ModelSpec& model_;
  const OptimizerConfig& optimizer_;
  const StepProgram& program_;
  DeviceId device_;
  DeviceState& state_;
  Communicator& communicator_;
  Recorder& recorder_;
  const Measurement& measurement_;

  std::map<std::pair<PipelineId, StageId>, StageRunner> runners_;
  GradientTrees gradients_;
  std::map<LayerId, Tensors> sums_;  // complete gradients, from reduction until update
  std::map<Entry, at::Tensor> entries_;
  std::map<StageId, int> updates_;  // in this step, where weights have versions
  OldWeights old_weights_;          // with 2bw
  std::vector<std::pair<MicroBatchId, double>> losses_;
  StepInput input_;
  bool reduced_ = false;
  double clip_scale_ = 1;
};

}  // namespace frazil
