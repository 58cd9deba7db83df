#pragma once
// The devices of one process: their threads, what they hold, and the program in force on them. A
// pool does what it is asked to (exec/run/jobs/jobs.h); the pools of all processes of a run are
// asked the same at the same time, and what passes between devices goes through their
// communicators. It knows plans, not policies.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/devices/workers.h"
#include "exec/run/executor.h"
#include "exec/run/jobs/jobs.h"
#include "exec/run/jobs/pair_times.h"
#include "exec/run/move_layers.h"
#include "exec/run/run_options.h"
#include "exec/run/stages/forward_pass.h"
#include "exec/run/step_parts.h"
#include "exec/state/optimizer.h"

namespace frazil {

struct PoolProgram;  // a step program with an executor per device

class DevicePool {
 public:
  // The pool of device 0 makes start values from `seed`, which that device holds until the first
  // plan is in force. Throws as ComputeDevices does.
  DevicePool(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, const PoolPlace& place,
             const RunOptions& options);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // A set of devices that reach each other.
  struct World {
    // Those of this process's devices. They share wait_limit() as their CommunicatorOptions::limit.
    std::vector<std::unique_ptr<Communicator>> communicators;
    std::vector<int> process_of = {};   // as in PoolPlace; -1: the device is not there
    std::optional<Holdings> held = {};  // which devices held each layer before; none: as known here
    CommitRound* commit = nullptr;      // if given, no device updates weights without a commit
  };
  // Puts the devices into a world, between two jobs; a world that was joined before is left. What
  // devices held that are not there is lost, and if a plan uses one, none is in force.
  void join(World world);
  // Returns the layers that no device of the world holds.
  std::vector<LayerId> lost_layers() const;
  std::shared_ptr<const WaitLimit> wait_limit() const { return wait_limit_; }
  void limit_waits(Duration longest);
  // Ends what the devices wait for; may be called from any thread.
  void abort(const std::string& reason);

  // A transition: prepare, take, then adopt or revert. prepare() makes the plan's program, without
  // effect; it throws InfeasibleError, and InputError for a plan of another model or of more
  // devices. take() moves state (exec/run/move_layers.h). adopt() puts the plan in force; revert()
  // forgets what was prepared and taken.
  void prepare(const Plan& plan);
  MoveReport take();
  void adopt();
  void revert();
  // Returns the hashes of the weights of those cached layers whose first holder is here, and tells
  // the cache, if there is one, the hashes of all cached layers in order, and how many features it
  // may have of them.
  std::vector<LayerDigest> cached_weights();
  CacheTally use_cache(const std::vector<std::uint64_t>& hashes, const FeatureRoom& room);
  FeatureRoom room_for(const std::vector<std::uint64_t>& hashes) const;
  // Tell the other processes of the host where the rows of the cache are, and take those of one
  // process of the host in their place: the fullest, or the first ones. `offers` are by process.
  StoreOffer offer_store() const;
  void take_store(const std::vector<StoreOffer>& offers);
  // Reads ahead for a step on these samples, in micro-batches of `size`: those that begin here.
  void read_ahead(const std::vector<std::int64_t>& sample_ids, int size);

  StepAnswer step(const StepOrder& order, const std::vector<Samples>& micro_batches,
                  const std::vector<std::int64_t>& sample_ids);
  // Runs the steps of a window: each device all of them, one after another, without waiting for
  // other devices but where its actions do. Returns an answer per step. Requires: steps that follow
  // one another, with equal measurements; if there are several, no commits, no clipping, no cache,
  // and short batches of one size.
  std::vector<StepAnswer> steps(const std::vector<PoolStep>& window);
  EvaluationAnswer evaluate(const SampleSource& samples, int micro_batch_size);
  std::vector<LayerDigest> digests();
  std::optional<LayerId> find_non_finite();
  std::vector<BlockNumbers> sketch_blocks(const Samples& probe);
  std::vector<BlockNumbers> interval_gradients();
  void clear_gradient_sums();
  std::vector<LayerSample> take_layer_samples();
  // Bring together on device 0 what each layer's first holder has, in layer order: its state, or
  // its outputs for some samples, on the host. Empty on pools without device 0. The states share
  // memory with what the devices hold, and hold until the next step or transition.
  std::vector<LayerState> gather_states();
  std::vector<Tensors> outputs(const Samples& samples);
  // Replaces all state: device 0 holds these layers, `layers[l]` the state of layer l, and no other
  // device holds any. No plan is in force. `layers` are read on the pool of device 0 alone;
  // statistics that a layer lacks start anew.
  void restore(std::vector<LayerState> layers);

  // Measure what connects devices (exec/run/jobs/pair_times.h): messages of two of them, told by
  // the pool of the first one; and what each device waits for the commit of a round. Rounds have
  // numbers that no step has. Requires: for a commit, a world with one.
  PairTimes measure_pair(const PairQuestion& question);
  std::vector<Duration> measure_commit(Step round);

  void attach(PrefixCache& cache) { cache_ = &cache; }
  bool has_cache() const { return cache_ != nullptr; }
  // Returns the sizes of the blocks that a transition to this plan would copy state into here.
  std::vector<Bytes> copied_blocks(const Plan& plan) const;
  const StateMemory& state_memory() const { return state_memory_; }
  bool has_plan() const { return full_ != nullptr; }
  bool clips() const { return optimizer_.clip_norm > 0; }
  const StepProgram& program() const;
  // Returns a hash of the program that was prepared: equal in all processes, or they disagree.
  std::uint64_t prepared_hash() const;
  // Returns the devices of the program in force that vote before they update, ascending.
  std::vector<DeviceId> voters() const;
  const Holdings& holdings() const { return held_; }
  const ModelSpec& model() const { return model_; }
  const ModelProfile& structure() const { return structure_; }
  // Returns what the devices of this process hold.
  const std::vector<DeviceState>& states() const { return states_; }
  const ComputeDevices& devices() const { return devices_; }
  const PoolPlace& place() const { return place_; }

 private:
  using Program = PoolProgram;
  struct Pending;  // a transition that has been prepared

  std::size_t local(DeviceId device) const { return device.index() - place_.first.index(); }
  Program& program_for(int samples);
  Program& program_of(const PoolStep& step);
  void begin_commit(const PoolStep& step, const Plan& plan);
  void run_window(const std::vector<PoolStep>& window, const std::vector<Program*>& programs,
                  StepParts& parts);
  StepInput input_of(const PoolStep& step, int steps_before, UpdateCounts* updates) const;
  void refuse_after_failure() const;
  void run_job(const std::function<void(DeviceId)>& job,
               const std::function<std::string(DeviceId)>& where = {});
  bool begins_here(MicroBatchId micro_batch) const;
  CacheTally tally() const;
  bool commits(const Plan& plan) const;
  StepProgram make_step_program(const Plan& plan) const;
  void carry_by_nccl(World& world) const;
  void start(Program& program);
  std::unique_ptr<Program> make_started(StepProgram step);
  std::vector<DeviceId> first_holders() const;
  // Runs a network of layers of the model forward; `visitor_of` makes the visitor of each device of
  // this process.
  void forward_all(const EvaluatedNetwork& evaluated, const SampleSource& samples, int size,
                   const std::function<LayerVisitor(std::size_t)>& visitor_of);
  // Brings what each layer's first holder has together on device 0.
  using TensorsOf = std::function<Tensors(DeviceId, LayerId)>;
  std::vector<Tensors> collect(MessageKind kind, const TensorsOf& what);
  void settle_states();

  ModelSpec model_;
  const EvaluatedNetwork whole_;  // all layers of the model
  OptimizerConfig optimizer_;
  std::uint64_t seed_;
  PoolPlace place_;
  RunOptions options_;
  ModelProfile structure_;
  ComputeDevices devices_;  // before what lives on the devices
  std::shared_ptr<WaitLimit> wait_limit_;
  StateMemory state_memory_ = StateMemory::keeping();
  Holdings held_;
  std::vector<DeviceState> states_;
  CommitRound* commit_ = nullptr;
  std::mutex world_;  // guards the next one against abort()
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::string failure_;  // of a job, told in one sentence
  std::atomic<std::int64_t> ended_actions_{0};
  SteadyTime zero_ = std::chrono::steady_clock::now();  // of recorded times
  std::vector<Recorder> recorders_;
  Measurement measurement_;
  PrefixCache* cache_ = nullptr;
  Step jobs_ = 0;  // between steps, numbered for their messages
  std::unique_ptr<Program> full_;
  std::unique_ptr<Program> short_;  // of the last short batch seen
  std::unique_ptr<Pending> pending_;
  Workers workers_;  // last: its threads end first
};

}  // namespace frazil
