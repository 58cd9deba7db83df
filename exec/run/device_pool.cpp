#include "exec/run/device_pool.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "exec/cache/prefix_cache.h"
#include "exec/communication/device_communicator.h"
#include "exec/communication/nccl_communicator.h"
#include "exec/devices/steady_time.h"
#include "exec/disk/hashes.h"
#include "exec/reduction/batch_statistics.h"
#include "exec/run/pool_program.h"
#include "exec/run/sample_slices.h"
#include "planner/actions/validate_plan.h"
#include "planner/plan/commit_round.h"
#include "planner/plan/plan_json.h"
#include "profiles/cluster.h"
#include "profiles/error.h"

namespace frazil {
namespace {

template <class T>
void append(std::vector<T>& all, std::vector<T> some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
}

std::vector<LayerId> list_layers(const ModelSpec& model) {
  std::vector<LayerId> layers;
  for (std::size_t l = 0; l < model.layers.size(); ++l) layers.emplace_back(l);
  return layers;
}

DeviceChoice choose_devices(DeviceChoice choice, const PoolPlace& place) {
  choice.first = place.first.value;
  return choice;
}

// Each rank gives NCCL its work by a thread of its own, and NCCL takes that of a GPU from one.
void refuse_shared_gpus(const ComputeDevices& devices, const PoolPlace& place) {
  std::map<int, DeviceId> first_on;
  for (int d = 0; d < devices.count(); ++d) {
    const DeviceId device{place.first.value + d};
    const int gpu = devices[static_cast<std::size_t>(d)].gpu();
    const auto [first, is_new] = first_on.emplace(gpu, device);
    if (is_new) continue;
    throw InputError("--transport nccl", 0,
                     "devices " + std::to_string(first->second.value) + " and " +
                         std::to_string(device.value) + " on GPU " + std::to_string(gpu),
                     "a GPU for each device of a process");
  }
}

}  // namespace

struct DevicePool::Pending {
  StepProgram step;
  LayerMoves moves;
  Holdings wanted;
  std::vector<bool> freezes;
  std::vector<TakenLayers> taken;  // by device of this process
};

DevicePool::DevicePool(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed,
                       const PoolPlace& place, const RunOptions& options)
    : model_(std::move(model)),
      whole_{model_, list_layers(model_)},
      optimizer_(optimizer),
      seed_(seed),
      place_(place),
      options_(options),
      structure_(make_structure(model_, optimizer_bytes_per_parameter_byte(optimizer))),
      devices_(choose_devices(options.devices, place), place.count, options.deadline),
      wait_limit_(std::make_shared<WaitLimit>(options.deadline)),
      held_(model_.layers.size(), {DeviceId{0}}),
      states_(static_cast<std::size_t>(place.count)),
      workers_(place.count, {.first = place.first,
                             .pins = place.has_core_per_rank,
                             .grace = std::max<Duration>(options.deadline, std::chrono::minutes(1)),
                             .on_stuck = {}}) {
  if (place.nccl != nullptr) refuse_shared_gpus(devices_, place);
  if (place.is_here(DeviceId{0})) {
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      states_[0][LayerId{l}] = make_initial_state(model_, LayerId{l}, seed, state_memory_);
    }
  }
  for (int d = 0; d < place.count; ++d) {
    recorders_.emplace_back(DeviceId{place.first.value + d}, zero_,
                            devices_[static_cast<std::size_t>(d)], &ended_actions_);
  }
  workers_.run([this](DeviceId device) { devices_[local(device)].enter(); });
  settle_states();
}

DevicePool::~DevicePool() = default;

// Tensors for a GPU of this process stay pointers.
void DevicePool::carry_by_nccl(World& world) const {
  std::vector<bool> peers;
  for (const int process : world.process_of) peers.push_back(process != place_.process());
  for (std::size_t d = 0; d < world.communicators.size(); ++d) {
    world.communicators[d] =
        over_nccl(std::move(world.communicators[d]),
                  {.table = place_.nccl,
                   .gpu = devices_[d].gpu(),
                   .place = devices_[d].place(),
                   .peers = peers,
                   .waits = {.deadline = options_.deadline, .limit = wait_limit_}});
  }
}

void DevicePool::join(World world) {
  ENSURE(world.communicators.size() == states_.size(),
         "a communicator for each device of the process");
  if (place_.nccl != nullptr) carry_by_nccl(world);
  world.communicators = on_devices(std::move(world.communicators), devices_,
                                   /*carries_gpu_tensors=*/place_.nccl != nullptr);
  if (world.commit && place_.has_core_per_rank) world.commit->let_spin();
  // Executors refer to the communicators of the world that is left.
  pending_.reset();
  short_.reset();
  if (full_) full_->executors.clear();
  // In the world before, some may have begun jobs that others have not.
  jobs_ = 0;
  if (world.held) held_ = std::move(*world.held);
  place_.process_of = std::move(world.process_of);
  if (!place_.process_of.empty()) {
    place_.devices = static_cast<int>(place_.process_of.size());
    const auto is_lost = [this](DeviceId device) { return place_.process_of[device.index()] < 0; };
    std::size_t lost = 0;
    for (std::vector<DeviceId>& holders : held_) lost += std::erase_if(holders, is_lost);
    if (lost > 0) full_.reset();
  }
  commit_ = world.commit;
  bool was_abandoned = false;
  {
    const std::lock_guard<std::mutex> lock(world_);
    communicators_.swap(world.communicators);
    was_abandoned = devices_.renew();
  }
  // What GPUs were given in the world that is left waits for nobody once that world is gone.
  world.communicators.clear();
  if (was_abandoned) {
    workers_.run([this](DeviceId device) { devices_[local(device)].finish(); });
  }
  failure_.clear();
  if (full_) start(*full_);
}

std::vector<LayerId> DevicePool::lost_layers() const {
  std::vector<LayerId> lost;
  for (std::size_t l = 0; l < held_.size(); ++l) {
    if (held_[l].empty()) lost.push_back(LayerId{l});
  }
  return lost;
}

void DevicePool::limit_waits(Duration longest) {
  wait_limit_->set(longest);
  devices_.limit_waits(longest);
}

void DevicePool::abort(const std::string& reason) {
  const std::lock_guard<std::mutex> lock(world_);
  if (!communicators_.empty()) communicators_[0]->abort(reason);
  devices_.abandon();
}

const StepProgram& DevicePool::program() const {
  ENSURE(full_ != nullptr, "a plan is in force");
  return full_->step;
}

std::uint64_t DevicePool::prepared_hash() const {
  ENSURE(pending_ != nullptr, "a plan is prepared");
  std::string text = to_json(pending_->step.plan);
  for (const std::vector<Action>& list : pending_->step.schedule.devices) {
    for (const Action& action : list) append_text(text += '\n', action);
  }
  return hash_text(text);
}

std::vector<DeviceId> DevicePool::voters() const {
  std::vector<DeviceId> voters;
  if (!commits(program().plan)) return voters;
  const auto& lists = program().schedule.devices;
  for (std::size_t d = 0; d < lists.size(); ++d) {
    const bool votes = std::any_of(lists[d].begin(), lists[d].end(), [](const Action& action) {
      return action.kind == ActionKind::kBarrier;
    });
    if (votes || keeps_statistics(model_, program(), DeviceId{d})) voters.push_back(DeviceId{d});
  }
  return voters;
}

// Updates among the backwards come before anyone could commit. What one process does alone is
// committed as well: the loss of another one, which sleeps, ends the step in all.
bool DevicePool::commits(const Plan& plan) const {
  return commit_ != nullptr && updates_at_end(plan);
}

StepProgram DevicePool::make_step_program(const Plan& plan) const {
  refuse_mixed_slices(model_, structure_, plan);
  const bool has_barrier = optimizer_.clip_norm > 0 || commits(plan);
  return make_program(plan, structure_, place_.devices, has_barrier, options_.order);
}

void DevicePool::start(Program& program) {
  for (std::size_t d = 0; d < states_.size(); ++d) {
    const DeviceId device{place_.first.index() + d};
    program.executors.push_back(std::make_unique<Executor>(ExecutionContext{
        model_, optimizer_, program.step, device, states_[d], *communicators_[d], recorders_[d],
        measurement_, commits(program.step.plan) ? commit_ : nullptr, wait_limit_.get()}));
  }
}

std::unique_ptr<DevicePool::Program> DevicePool::make_started(StepProgram step) {
  auto program = std::make_unique<Program>();
  program->step = std::move(step);
  start(*program);
  return program;
}

void DevicePool::prepare(const Plan& plan) {
  refuse_after_failure();
  const Cluster cluster = make_uniform_cluster(place_.devices, Bytes{}, {});
  validate(plan, {structure_, cluster}, "plan");
  auto pending = std::make_unique<Pending>();
  pending->step = make_step_program(plan);
  pending->wanted = find_holding_devices(plan, model_.layers.size());
  pending->moves = find_moves(held_, pending->wanted, place_.process_of);
  for (const LayerActivity& layer : pending->step.activity.layers) {
    pending->freezes.push_back(!layer.active);
  }
  pending_ = std::move(pending);
}

MoveReport DevicePool::take() {
  ENSURE(pending_ != nullptr, "a transition is prepared before state moves");
  if (full_) full_->executors.clear();
  short_.reset();
  Pending& pending = *pending_;
  pending.taken.resize(states_.size());
  ++jobs_;
  run_job([&](DeviceId device) {
    const std::size_t d = local(device);
    pending.taken[d] =
        exchange_layers({.moves = pending.moves,
                         .device = device,
                         .state = states_[d],
                         .freezes = pending.freezes,
                         .is_here = [this](DeviceId other) { return place_.is_here(other); },
                         .memory = state_memory_},
                        *communicators_[d], jobs_);
  });
  MoveReport report;
  for (const TakenLayers& taken : pending.taken) report += taken.report;
  return report;
}

void DevicePool::adopt() {
  ENSURE(pending_ != nullptr, "a transition is prepared before it is adopted");
  const std::unique_ptr<Pending> pending = std::move(pending_);
  run_job([&](DeviceId device) {
    const std::size_t d = local(device);
    (void)adopt_layers(pending->moves, device, std::move(pending->taken.at(d).layers),
                       pending->step.activity, states_[d]);
  });
  held_ = std::move(pending->wanted);
  settle_states();
  full_ = make_started(std::move(pending->step));
}

void DevicePool::revert() {
  pending_.reset();
  if (full_ && full_->executors.empty() && failure_.empty()) start(*full_);
}

std::vector<LayerDigest> DevicePool::cached_weights() {
  const int cached = program().activity.cached;
  std::vector<std::vector<LayerDigest>> found(states_.size());
  run_job([&](DeviceId device) {
    for (const auto& [layer, state] : states_[local(device)]) {
      if (layer.value >= cached || held_[layer.index()].front() != device) continue;
      Tensors weights = state.parameters;
      weights.insert(weights.end(), state.statistics.begin(), state.statistics.end());
      found[local(device)].push_back({layer, device, hash_weights(layer, weights)});
    }
  });
  std::vector<LayerDigest> all;
  for (auto& some : found) append(all, std::move(some));
  return all;
}

std::vector<Bytes> DevicePool::copied_blocks(const Plan& plan) const {
  const Activity activity = find_activity(structure_, plan.mask);
  std::vector<bool> freezes;
  for (const LayerActivity& layer : activity.layers) freezes.push_back(!layer.active);
  const LayerMoves moves =
      find_moves(held_, find_holding_devices(plan, model_.layers.size()), place_.process_of);
  return frazil::copied_blocks(moves, states_, place_.first, freezes);
}

void DevicePool::restore(std::vector<LayerState> layers) {
  full_.reset();
  short_.reset();
  pending_.reset();
  for (DeviceState& state : states_) state.clear();
  held_.assign(model_.layers.size(), {DeviceId{0}});
  if (!place_.is_here(DeviceId{0})) return;
  ENSURE(layers.size() == model_.layers.size(), "a state for each layer");
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layers[l].memory = state_memory_;
    layers[l].untrainable = find_untrainable(model_.layers[l]);
    if (layers[l].statistics.empty()) {
      layers[l].statistics = state_memory_.copy(initial_statistics(model_.layers[l]));
    }
    states_[0].emplace(LayerId{l}, std::move(layers[l]));
  }
  settle_states();
}

// Brings what a device holds into its memory before its thread touches it.
void DevicePool::settle_states() {
  for (std::size_t d = 0; d < states_.size(); ++d) {
    for (auto& [layer, state] : states_[d]) devices_[d].adopt(state);
  }
  devices_.settle();
}

DevicePool::Program& DevicePool::program_for(int samples) {
  ENSURE(full_ != nullptr, "a plan is in force");
  ENSURE(samples <= full_->step.plan.batch_size, "no more samples than the plan's batch");
  if (samples == full_->step.plan.batch_size) return *full_;
  if (short_ == nullptr || short_->step.plan.batch_size != samples) {
    const Plan shorter = shorten(full_->step.plan, samples);
    try {
      short_ = make_started(make_step_program(shorter));
    } catch (const InfeasibleError& error) {
      short_ = make_started(make_step_program(fall_back(shorter)));
      short_->note = "a batch of " + std::to_string(samples) + " samples runs as " +
                     summarize(short_->step.plan) + ", for " + error.what();
    }
  }
  return *short_;
}

// Refuses to go on after a failure, which leaves messages and state behind that no later job may
// meet.
void DevicePool::refuse_after_failure() const {
  ENSURE(failure_.empty(), "a run whose step has failed is made anew; it failed with: " + failure_);
}

void DevicePool::run_job(const std::function<void(DeviceId)>& job,
                         const std::function<std::string(DeviceId)>& where) {
  refuse_after_failure();
  // A step has waited for its devices; what other jobs have left for them is waited for here.
  const auto whole = [&](DeviceId device) {
    job(device);
    if (!where) devices_[local(device)].finish();
  };
  try {
    workers_.run(whole, [this](const std::string& reason) { abort(reason); },
                 {.time = std::max<Duration>(wait_limit_->time(), std::chrono::seconds(1)),
                  .progress = [this] { return ended_actions_.load(std::memory_order_relaxed); },
                  .place = where});
  } catch (const std::exception& error) {
    failure_ = error.what();
    throw;
  }
}

std::vector<LayerSample> DevicePool::take_layer_samples() {
  std::vector<LayerSample> samples;
  for (Recorder& recorder : recorders_) append(samples, recorder.take_layer_samples());
  return samples;
}

}  // namespace frazil
