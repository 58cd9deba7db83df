#pragma once
// A Run is a training under way: devices with their state, the program in force, and one call per
// step. It asks the devices (exec/run/device_pool.h) and joins their answers. It knows plans, not
// policies; the trainer, the profiler, verify and the tests drive it.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/control/control_group.h"
#include "exec/run/device_pool.h"
#include "exec/run/jobs/job_codec.h"
#include "exec/run/run_options.h"
#include "exec/run/step_deadline.h"
#include "exec/state/optimizer.h"
#include "exec/tensors/sample_range.h"
#include "planner/plan/step_window.h"

namespace frazil {

// The parts of a transition, one after another. There is nothing to drain between two steps, and
// threads and communicators stay with the run.
struct TransitionReport {
  MoveReport move;
  Duration program_time{0};   // the plan is checked and its program made
  Duration move_time{0};      // state goes to its new owners
  Duration executor_time{0};  // what is given up is freed, new executors are made
  Duration cache_time{0};     // the cache told which layers are frozen: it hashes their weights
  Duration start_time() const { return program_time + executor_time + cache_time; }
};

// A process that comes while the run goes on, and is ready to be set up.
struct Newcomer {
  int process = 0;  // its number
  Descriptor control;
};

// How processes come while the run goes on.
struct RunDoor {
  // Lets in those who wait, each under one of the vacant numbers, and turns the others away. Never
  // waits.
  std::function<std::vector<Newcomer>(const std::set<int>& vacant)> let_in;
  // Prepares the connections of a newcomer to the others in the world of this epoch.
  std::function<ConnectJob(int process, std::uint32_t epoch, const std::set<int>& others)>
      introduce;
};

// A run over processes, of which this one leads. Process 0 is this one. The world has a place for
// each process that may belong to it: those without one now are left out of `members`.
struct RunWorld {
  PoolPlace place;
  std::map<int, Descriptor> members = {};  // a connection to each, which are ready to serve
  std::string setup = {};                  // what they are told first
  // Makes the communicators of this process's devices in a new world.
  using Join = std::function<std::vector<std::unique_ptr<Communicator>>(
      std::uint32_t epoch, const std::vector<int>& process_of, const CommunicatorOptions&)>;
  Join join;
  // Does a ConnectJob in this process. Throws PeerLost, and what `check` throws, which is called
  // several times a second.
  using Connect = std::function<void(const ConnectJob&, const std::function<void()>& check)>;
  Connect connect = {};
  std::optional<RunDoor> door = std::nullopt;  // none: nobody can come
  // Is told, by another thread, of a process that is not heard of.
  std::function<void(const Silence&)> warn = {};
};

// Returns the world of a run whose devices are all threads of this process.
RunWorld one_process(int devices);

// A step that is asked for, as Run::step() takes it.
struct StepRequest {
  Step step = 0;
  double learning_rate = 0;
  std::vector<Samples> micro_batches;
  std::vector<double> rate_factors = {};
  std::vector<std::int64_t> sample_ids = {};
  SampleRange range = {};
};

class Run {
 public:
  // Makes start values from `seed`, which device 0 holds until the first plan is in force. Throws
  // as ComputeDevices does.
  Run(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, int devices,
      const RunOptions& options = {});
  // Leads a run over processes, whose members serve() it (exec/run/jobs/serve_pool.h).
  Run(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, RunWorld world,
      const RunOptions& options = {});
  // Dismisses the members, with exit code 0 unless end() was called.
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
  std::vector<Bytes> copied_blocks(const Plan& plan) const { return pool_.copied_blocks(plan); }
  const StateMemory& state_memory() const { return pool_.state_memory(); }
  // Takes over the state of another run of the same model, `layers[l]` that of layer l, in place of
  // the start values. Requires: no plan has been in force.
  void restore(std::vector<LayerState> layers);
  // Attaches a cache, which must outlive the run's steps. From the next transition on, plans that
  // cache the frozen prefix keep and find its features there.
  void attach(PrefixCache& cache) { pool_.attach(cache); }
  // Returns what the caches of all processes have told last, also of those that are lost.
  const std::map<int, CacheTally>& cache_tallies() const { return cache_tallies_; }
  std::vector<std::string> take_cache_warnings() { return std::exchange(cache_warnings_, {}); }
  // Names the samples of the step after the next one, so that members prepare them beside it; if
  // `reads_cache`, also what their caches hold of them.
  void expect(const SampleRange& next, bool reads_cache) {
    next_ = next;
    reads_ahead_ = reads_cache;
  }
  // Reads ahead for a step on these samples, in micro-batches of `size`, in this process.
  void read_ahead(const std::vector<std::int64_t>& sample_ids, int size) {
    pool_.read_ahead(sample_ids, size);
  }
  void measure(const Measurement& measurement) { measurement_ = measurement; }

  // Runs one step over the global micro-batches; the last ones may be missing or short (a short
  // batch). Throws what the first device to fail throws (exec/devices/step_fault.h). Then state and
  // messages are undefined, and any further step or transition throws a std::logic_error that says
  // so. `rate_factors` multiply the learning rate, by block; empty: all 1. `sample_ids` tell a
  // cache which samples these are, one after another; empty: the cache is not used. `range` tells
  // members which samples these are. Throws StepUndone if a member is lost before the step is
  // committed: then no device has updated its weights.
  StepResult step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                  bool record = false, const std::vector<double>& rate_factors = {},
                  const std::vector<std::int64_t>& sample_ids = {}, const SampleRange& range = {});
  // Runs steps that follow one another and returns a result for each. They are handed out in the
  // windows of the plan in force (planner/plan/step_window.h), or one by one where devices meet in
  // every step, which the results note. What happens between two steps happens between two calls:
  // measure() holds for all of them. Throws as step() does; a later step of a window may have been
  // done on some devices then.
  std::vector<StepResult> steps(const std::vector<StepRequest>& requests, bool record = false);

  // Tells how long a step of the plan in force is predicted to take, and how many are handed out at
  // once. If the options ask for a predicted deadline, it follows from both.
  void expect_step(Duration predicted, int window = 1);

  // Measures messages between two devices, and so often what devices wait for a commit before they
  // update; no plan need be in force. Requires: for commits, a run over processes.
  PairTimes measure_pair(const PairQuestion& question);
  std::vector<Duration> measure_commits(int rounds);

  // Returns the layer samples of all devices since the last call.
  std::vector<LayerSample> take_layer_samples();
  // The mean loss and the share of right answers; none of a model that does not classify.
  struct Evaluation {
    double loss = 0;
    std::optional<double> accuracy = std::nullopt;
  };
  // Evaluates `samples`, which members know as `part`, in eval mode, each layer on its first
  // holder.
  Evaluation evaluate(const SampleSource& samples, int micro_batch_size,
                      SamplePart part = SamplePart::kTest);
  // Returns the outputs of all layers, computed as evaluate() does, on the host.
  std::vector<Tensors> outputs(const Samples& samples) { return pool_.outputs(samples); }
  // Returns a sketch (planner/freezing/plasticity.h) of what each block's last layer puts out for
  // the samples that members know as SamplePart::kProbe.
  std::vector<std::vector<double>> sketch_blocks(const Samples& probe);
  // Returns the L1 norm of each block's sum of gradients (LayerState::gradient_sums), 0 for a block
  // that has none.
  std::vector<double> interval_gradients();
  // Empties LayerState::gradient_sums of all layers.
  void clear_gradient_sums();

  // Returns the first layer with a weight or a moment that is not finite.
  std::optional<LayerId> find_non_finite();
  // Returns the state of each layer at its first holder. It may lie where the holder has it, and
  // holds until the next step or transition.
  std::vector<LayerState> gather_states();
  // Returns a hash over the hashes of all layers' weights and optimizer state, in layer order.
  // Requires: replicas hold the same bits.
  std::uint64_t weight_hash();
  const Plan& plan() const { return pool_.program().plan; }
  const ModelSpec& model() const { return pool_.model(); }
  const ModelProfile& structure() const { return pool_.structure(); }
  // Returns the devices of this process.
  const DevicePool& pool() const { return pool_; }
  const ComputeDevices& devices() const { return pool_.devices(); }
  // Returns the processes that are there, this one (0) included.
  std::set<int> processes() const;

  // After StepUndone: makes a new world of the processes that are left, and returns the sentences
  // that tell of those that are lost. The plan is in force still if it used none of theirs.
  std::vector<std::string> regroup();
  // Returns the devices that are there, ascending.
  std::vector<DeviceId> devices_there() const;
  // Sees who has come: they are set up while steps go on. Returns true if some are ready to be
  // taken in. Never waits. To be called between two steps.
  bool sees_newcomers();
  // Takes in those that are ready: each gets its connections, and worlds begin to which they
  // belong. The plan in force uses none of them; the next one may. One that goes meanwhile is left
  // out. Returns the sentences that tell of members that are lost meanwhile.
  std::vector<std::string> take_in();
  // Returns the devices of processes that are there or about to be.
  std::vector<DeviceId> devices_expected() const;
  // Returns the devices that would be left if one process were lost, for each but this one.
  std::vector<std::vector<DeviceId>> devices_after_losses() const;
  // Returns sentences that tell of processes that have come, or have not, since the last call.
  std::vector<std::string> take_arrivals() { return std::exchange(arrivals_, {}); }
  // Returns when the first process was lost that has been lost since the last call.
  std::optional<LossMoment> take_loss_moment();
  // Returns the layers that nobody holds any more: the run goes on from a checkpoint (restore()).
  std::vector<LayerId> lost_layers() const { return pool_.lost_layers(); }
  // Dismisses the members with this exit code and sentence.
  void end(int code, const std::string& sentence);

 private:
  // Gives a job to the members, does this process's part, and returns all answers.
  template <class Answer>
  std::vector<Answer> ask(Job job, const std::function<Answer()>& own,
                          const std::set<int>& voters = {}, Step step = 0,
                          std::vector<int>* answered = nullptr);
  void ask_done(Job job, const std::function<void()>& own);
  StepMeetings meetings(bool caches) const;
  StepResult step(const StepRequest& request, bool record);
  std::size_t count_window(const std::vector<StepRequest>& requests, std::size_t first,
                           std::size_t most) const;
  std::vector<StepResult> step_ahead(const std::vector<StepRequest>& requests, std::size_t first,
                                     std::size_t count, bool record);
  std::optional<Duration> align_clocks(const std::vector<int>& processes,
                                       std::vector<StepAnswer>& answers) const;
  std::vector<MemberReply> collect(std::exception_ptr own_failure);
  void enter_world(bool has_newcomer = false);
  std::vector<int> place_devices(const std::set<int>& there) const;
  std::vector<DeviceId> devices_of(const std::set<int>& processes) const;
  std::map<int, std::string> renew_world();
  void take_in(int process);
  void share_stores();
  void use_cache();
  void note(CacheTally tally);
  void limit_waits();
  std::string name_of(int process) const;

  RunOptions options_;
  const std::vector<int> home_of_;  // the process of each device that may be there; empty: one
  std::string setup_;
  RunWorld::Join join_;
  RunWorld::Connect connect_;
  std::optional<RunDoor> door_;
  std::vector<int> ready_;  // newcomers
  std::vector<std::string> arrivals_;
  std::vector<std::string> lost_meanwhile_;  // while newcomers were taken in
  std::uint32_t epoch_ = 0;
  StepDeadline step_deadline_;
  Measurement measurement_;
  std::optional<SampleRange> next_;
  bool reads_ahead_ = false;
  std::uint32_t shared_in_ = 0;  // the epoch in which processes have shared their caches; 0: none
  std::map<int, CacheTally> cache_tallies_;  // by process
  std::map<int, CacheTally> cache_before_;   // what lost processes of the same number had done
  std::vector<std::string> cache_warnings_;
  DevicePool pool_;
  std::unique_ptr<ControlGroup> group_;  // none: all devices are in this process
};

template <class Answer>
std::vector<Answer> Run::ask(Job job, const std::function<Answer()>& own,
                             const std::set<int>& voters, Step step, std::vector<int>* answered) {
  if (!group_) return {own()};
  group_->order(encode(std::move(job)), voters, step);
  std::vector<Answer> answers;
  std::exception_ptr failure;
  try {
    answers.push_back(own());
  } catch (const std::exception& error) {
    failure = std::current_exception();
    group_->abort(error.what());
  }
  for (const MemberReply& reply : collect(failure)) {
    answers.push_back(decode<Answer>(reply.result));
    if (answered) answered->push_back(reply.process);
  }
  return answers;
}

}  // namespace frazil
