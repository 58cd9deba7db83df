#pragma once
// The executor performs the list of actions of one device with one switch over their kinds: the
// twin of the planner's lowering (planner/lowering/lower.h). Every synchronous plan with equal
// micro-batches gives the same bits. An executor runs in its device's thread.

#include <atomic>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/program/step_program.h"
#include "exec/reduction/batch_statistics.h"
#include "exec/reduction/gradient_sums.h"
#include "exec/run/execution_context.h"
#include "exec/run/gradient_watch.h"
#include "exec/run/loss_sample.h"
#include "exec/run/prefix_completion.h"
#include "exec/run/stages/kept_weights.h"
#include "exec/run/stages/stage_entries.h"
#include "exec/run/stages/stage_runner.h"
#include "exec/run/stages/weight_reads.h"
#include "exec/run/step_data.h"
#include "exec/run/unread_numbers.h"
#include "exec/state/optimizer.h"

namespace frazil {

class Executor {
 public:
  // The references must outlive the executor.
  explicit Executor(const ExecutionContext& context);

  // Runs one training step and returns the losses that this device saw. Errors name rank, step and
  // action and keep their kind (exec/devices/step_fault.h): InfeasibleError for an action that the
  // executor cannot perform, OutOfMemory, ...; PeerLost, which tells of another rank's fault, is
  // thrown as it is. The state is undefined after an error.
  std::vector<LossSample> run_step(const StepInput& input);

  // Returns the last layer, of those that this device updated in the last step, whose gradient was
  // not finite.
  std::optional<LayerId> non_finite() const { return watch_.non_finite(); }

  // Returns where the executor is, as "step 17, action 1B3". Any thread may ask while the program
  // lives.
  std::string place() const;

 private:
  void perform(const Action& action);
  void compute(const Action& action);
  void forward(const Action& action);
  void find_features(const Action& action, std::span<const std::int64_t> ids,
                     StageRunner::Data& data);
  void keep_features(const Action& action, const Tensors& features);
  void store_features(const Action& action, const Tensors& features);
  void note_losses(const Action& forward, const std::vector<LayerLoss>& losses);
  void note_updates(const Action& forward);
  void note_squares(LayerId layer, const Tensors& gradients);
  void catch_up();
  void read_numbers();
  void settle();
  UnreadNumbers* unread() { return recorder_.compute().lanes() == nullptr ? nullptr : &unread_; }
  void backward(const Action& action);
  void backward_weight(const Action& action);
  void send(const Action& action);
  void receive(const Action& action);
  void pass_barrier();
  void vote();
  void share_statistics();
  void end_statistics(bool is_in_update);
  bool is_last_update(const Action& action) const;
  void begin_memory();
  void update(const Action& action);
  void update_weights(LayerId layer, Tensors gradients);
  std::vector<bool> find_moved(LayerId layer, const Tensors& parameters) const;
  double rate_of(LayerId layer) const;
  StageRunner& runner(const Action& action);
  Tag tag_of(const Message& message) const;

  const ModelSpec& model_;
  const OptimizerConfig& optimizer_;
  const StepProgram& program_;
  DeviceId device_;
  DeviceState& state_;
  Communicator& communicator_;
  Recorder& recorder_;
  const Measurement& measurement_;
  CommitRound* commit_;
  const WaitLimit* limit_;

  std::map<std::pair<PipelineId, StageId>, StageRunner> runners_;
  std::optional<PrefixCompletion> prefix_;  // if a first stage of the device has a cached prefix
  GradientSums gradients_;
  BatchStatistics statistics_;
  bool has_voted_ = false;
  bool has_folded_ = false;
  StageEntries entries_;
  StepData data_;
  WeightReads reads_;
  KeptWeights kept_;
  std::map<LayerId, std::vector<ParameterRule>> rules_;  // empty without parameter groups
  std::vector<LossSample> losses_;
  UnreadNumbers unread_;
  // Outputs of the cached prefix on their way to the host, by the F that made them.
  std::vector<std::pair<const Action*, Tensors>> features_;
  StepInput input_;
  double clip_scale_ = 1;
  GradientWatch watch_;
  std::atomic<Step> step_{0};
  std::atomic<const Action*> action_{nullptr};  // null before the first and after the last action
};

}  // namespace frazil
