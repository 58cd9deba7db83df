#pragma once
// A Run is a training under way: devices with their state, the program in force, and one call per
// step. It knows plans, not policies; the trainer, the profiler, verify and the tests drive it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/devices/workers.h"
#include "exec/run/executor.h"
#include "exec/run/step_deadline.h"
#include "exec/state/optimizer.h"
#include "exec/state/transition.h"
#include "planner/actions/message_order.h"

namespace frazil {

struct StepResult {
  double loss = 0;                       // mean over the step's samples
  Duration wall{0};                      // from handing the step out to the last device's end
  std::vector<Span> spans;               // of all devices; empty unless recording
  std::vector<MeasuredMemory> memory;    // by device; empty unless measured
  std::vector<WeightRead> weight_reads;  // of all stages; empty without weight versions
  std::vector<double> gradient_squares;  // by layer, where they are measured; 0: no gradient
  // The last layer whose gradient was not finite, if there is one: its weights are lost, and so are
  // those of layers before it that it has sent gradients to.
  std::optional<LayerId> non_finite_gradient;
  // Tells what ran in place of a short batch whose plan's schedule is illegal for it; else empty.
  std::string note;
};

// The parts of a transition, one after another. There is nothing to drain between two steps, and
// threads and communicators stay with the run.
struct TransitionReport {
  MoveReport move;
  Duration program_time{0};   // the plan is checked and its program made
  Duration move_time{0};      // state goes to its new owners or is freed
  Duration executor_time{0};  // old executors ended, new ones made
  Duration cache_time{0};     // the cache told which layers are frozen: it hashes their weights
  Duration start_time() const { return program_time + executor_time + cache_time; }
};

struct RunOptions {
  MessageOrder order = MessageOrder::kByTag;
  // The longest single wait for a message or a GPU. A step also fails if no device ends an action
  // within this time, but at least within a second.
  Duration deadline = std::chrono::minutes(10);
  // Take the limit of exec/run/step_deadline.h in place of `deadline`.
  bool predicts_deadline = false;
  DeviceChoice devices = {};
};

class Run {
 public:
  // Makes start values from `seed`, which device 0 holds until the first plan is in force. Throws
  // as ComputeDevices does.
  Run(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, int devices,
      const RunOptions& options = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Puts a plan in force between two steps: moves state, freezes and thaws by the plan's mask,
  // starts new executors. Throws InfeasibleError, and InputError for a plan of another model or of
  // more devices; then the old plan stays in force. An error once state moves ends the run as a
  // failed step does.
  TransitionReport transition_to(const Plan& plan);
  // Returns the sizes of the blocks that a transition to this plan would copy state into.
  // state_memory() may reserve them on any thread. Requires: a plan is in force.
  std::vector<Bytes> copied_blocks(const Plan& plan) const;
  const StateMemory& state_memory() const { return state_memory_; }
  // Takes over the state of another run of the same model, `layers[l]` that of layer l, in place of
  // the start values. Requires: no plan has been in force.
  void restore(std::vector<LayerState> layers);
  // Attaches a cache, which must outlive the run's steps. From the next transition on, plans that
  // cache the frozen prefix keep and find its features there.
  void attach(PrefixCache& cache) { cache_ = &cache; }
  void measure(const Measurement& measurement) { measurement_ = measurement; }

  // Runs one step over the global micro-batches; the last ones may be missing or short (a short
  // batch). Throws what the first device to fail throws (exec/devices/step_fault.h). Then state and
  // messages are undefined, and any further step or transition throws a std::logic_error that says
  // so. `rate_factors` multiply the learning rate, by block; empty: all 1. `sample_ids` tell a
  // cache which samples these are, one after another; empty: the cache is not used.
  StepResult step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                  bool record = false, const std::vector<double>& rate_factors = {},
                  const std::vector<std::int64_t>& sample_ids = {});

  // Tells how long a step of the plan in force is predicted to take. If the options ask for a
  // predicted deadline, it follows from that.
  void expect_step(Duration predicted);

  // Returns the layer samples of all devices since the last call.
  std::vector<LayerSample> take_layer_samples();
  // The mean loss and, of a classifier, the share of right answers.
  struct Evaluation {
    double loss = 0;
    double accuracy = 0;
  };
  // Evaluates `samples` in eval mode with the weights of each layer's first holder.
  Evaluation evaluate(const Samples& samples, int micro_batch_size) const;
  // Returns the outputs of all layers, computed as evaluate() does, on the host.
  std::vector<Tensors> outputs(const Samples& samples) const;
  // Empties LayerState::gradient_sums of all layers.
  void clear_gradient_sums();

  // Returns the first layer with a weight or a moment that is not finite.
  std::optional<LayerId> find_non_finite() const;
  // Returns the parameters of each layer's first holder, where they lie; they hold until the next
  // step or transition.
  std::vector<const Tensors*> parameters() const;
  // Returns the hash of all weights and optimizer state, in layer order. Requires: replicas hold
  // the same bits.
  std::uint64_t weight_hash() const;
  const Plan& plan() const;
  const ModelSpec& model() const { return model_; }
  const ModelProfile& structure() const { return structure_; }
  const std::vector<DeviceState>& states() const { return states_; }
  const ComputeDevices& devices() const { return devices_; }

 private:
  struct Program;  // a step program with an executor per device
  Program& program_for(int samples);
  void refuse_after_failure() const;
  void limit_waits();
  void run_job(const std::function<void(DeviceId)>& job,
               const std::function<std::string(DeviceId)>& place = {});
  StepProgram make_step_program(const Plan& plan) const;
  std::unique_ptr<Program> start(StepProgram program);
  void move_to(StepProgram program, TransitionReport& report);
  MoveReport move_states(const StepProgram& program);
  void on_every_device(const std::function<void(DeviceId)>& job);
  void settle_states();
  std::vector<Tensors> gather_parameters() const;

  ModelSpec model_;
  OptimizerConfig optimizer_;
  std::uint64_t seed_;
  RunOptions options_;
  ModelProfile structure_;
  ComputeDevices devices_;  // before what lives on the devices
  std::shared_ptr<WaitLimit> wait_limit_;
  StepDeadline step_deadline_;
  StateMemory state_memory_ = StateMemory::keeping();
  std::vector<DeviceState> states_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  SteadyTime origin_;
  std::atomic<std::int64_t> ended_actions_{0};
  std::vector<Recorder> recorders_;
  Measurement measurement_;
  PrefixCache* cache_ = nullptr;
  std::string failure_;  // of a step or transition, told in one sentence
  std::unique_ptr<Program> full_;
  std::unique_ptr<Program> short_;  // of the last short batch seen
  Workers workers_;                 // last: its threads end first
};

}  // namespace frazil
