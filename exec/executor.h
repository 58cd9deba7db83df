#pragma once
// The executor of one device: performs its list of actions with one switch, the twin of the
// planner's lowering, under the exactness rules of the design (same bits for every synchronous plan
// with equal micro-batches). Runs in its device's thread.

#include <map>
#include <vector>

#include "exec/communicator.h"
#include "exec/dataset.h"
#include "exec/gradient_sums.h"
#include "exec/run_config.h"
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

struct LossSample {
  MicroBatchId micro_batch;
  LayerId layer;
  double value = 0;  // scaled: those of a step add up to its mean
  friend auto operator<=>(const LossSample&, const LossSample&) = default;
};

class Executor {
 public:
  // References must outlive the executor.
  Executor(const ModelSpec& model, const OptimizerConfig& optimizer, const StepProgram& program,
           DeviceId device, DeviceState& state, Communicator& communicator, Recorder& recorder,
           const Measurement& measurement);

  // One training step. Returns the losses that this device saw. Throws PeerLost, or InfeasibleError
  // naming an action kind it cannot perform.
  std::vector<LossSample> run_step(const StepInput& input);

 private:
  // What one stage has for another: what it puts out, or the gradient of what it has read.
  struct Entry {
    PipelineId pipeline;
    StageId from;
    StageId to;
    MicroBatchId micro_batch;
    bool gradient = false;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  void perform(const Action& action);
  void compute(const Action& action);
  void forward(const Action& action);
  void backward(const Action& action);
  void backward_weight(const Action& action);
  EdgeTensors take_activations(const Action& action);
  EdgeTensors take_gradients(const Action& action);
  void leave_gradients(const Action& action, EdgeTensors gradients);
  void send(const Action& action);
  void receive(const Action& action);
  void exchange_norms();
  void begin_memory();
  std::int64_t count_received(const Action& action, const EdgeTensors& inputs) const;
  void update(const Action& action);
  void update_weights(LayerId layer, Tensors gradients);
  void note_reads(const Action& update);
  const OldWeights& choose_weights(const Action& forward) const;
  int count_samples(const Action& action) const;
  StageRunner& runner(const Action& action);
  const StageLinks& links(const Action& action) const;
  Tag tag_of(const Entry& entry) const;
  Tensors take(const Entry& entry);

  const ModelSpec& model_;
  const OptimizerConfig& optimizer_;
  const StepProgram& program_;
  DeviceId device_;
  DeviceState& state_;
  Communicator& communicator_;
  Recorder& recorder_;
  const Measurement& measurement_;

  std::map<std::pair<PipelineId, StageId>, StageRunner> runners_;
  GradientSums gradients_;
  std::map<Entry, Tensors> entries_;  // by edge of the link, in order
  std::map<StageId, int> updates_;    // in this step, where weights have versions
  OldWeights old_weights_;            // with 2bw
  std::vector<LossSample> losses_;
  StepInput input_;
  double clip_scale_ = 1;
};

}  // namespace frazil
