#include "exec/run/run.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "exec/cache/prefix_cache.h"
#include "exec/communication/device_communicator.h"
#include "exec/communication/in_process_communicator.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/allocation_meter.h"
#include "planner/actions/validate_plan.h"
#include "profiles/cluster.h"
#include "profiles/error.h"

namespace frazil {
namespace {

int count_samples(const std::vector<Samples>& micro_batches) {
  return std::accumulate(
      micro_batches.begin(), micro_batches.end(), 0,
      [](int sum, const Samples& s) { return sum + static_cast<int>(s.count()); });
}

}  // namespace

struct Run::Program {
  StepProgram step;
  std::string note;  // what it runs instead of the plan's own schedule, and why
  std::vector<std::unique_ptr<Executor>> executors;
};

Run::Run(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, int devices,
         const RunOptions& options)
    : model_(std::move(model)),
      optimizer_(optimizer),
      seed_(seed),
      options_(options),
      structure_(make_structure(model_, optimizer_bytes_per_parameter_byte(optimizer))),
      devices_(options.devices, devices, options.deadline),
      wait_limit_(std::make_shared<WaitLimit>(options.deadline)),
      states_(static_cast<std::size_t>(devices)),
      communicators_(make_in_process_communicators(
          devices, {.deadline = options.deadline,
                    .check_order = options.order == MessageOrder::kAsSent,
                    .limit = wait_limit_})),
      origin_(std::chrono::steady_clock::now()),
      workers_(devices, {.grace = std::max<Duration>(options.deadline, std::chrono::minutes(1)),
                         .on_stuck = {}}) {
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    states_[0][LayerId{l}] = make_initial_state(model_, LayerId{l}, seed, state_memory_);
  }
  communicators_ = on_devices(std::move(communicators_), devices_);
  for (int d = 0; d < devices; ++d) {
    recorders_.emplace_back(DeviceId{d}, origin_, devices_[static_cast<std::size_t>(d)],
                            &ended_actions_);
  }
  workers_.run([this](DeviceId device) { devices_[device.index()].enter(); });
  settle_states();
}

Run::~Run() = default;

const Plan& Run::plan() const {
  ENSURE(full_ != nullptr, "a plan is in force");
  return full_->step.plan;
}

StepProgram Run::make_step_program(const Plan& plan) const {
  return make_program(plan, structure_, workers_.devices(), optimizer_.clip_norm > 0,
                      options_.order);
}

std::unique_ptr<Run::Program> Run::start(StepProgram step) {
  auto program = std::make_unique<Program>();
  program->step = std::move(step);
  for (std::size_t d = 0; d < states_.size(); ++d) {
    program->executors.push_back(std::make_unique<Executor>(
        ExecutionContext{model_, optimizer_, program->step, DeviceId{d}, states_[d],
                         *communicators_[d], recorders_[d], measurement_}));
  }
  return program;
}

TransitionReport Run::transition_to(const Plan& plan) {
  refuse_after_failure();
  TransitionReport report;
  const SteadyTime start = std::chrono::steady_clock::now();
  // The program is made before anything moves: a plan that cannot run must leave the old one in
  // force.
  const Cluster cluster = make_uniform_cluster(workers_.devices(), Bytes{}, {});
  validate(plan, {structure_, cluster}, "plan");
  StepProgram program = make_step_program(plan);
  report.program_time = since(start);
  try {
    move_to(std::move(program), report);
  } catch (const std::exception& error) {
    failure_ = error.what();  // some layers may have moved
    throw;
  }
  expect_step(kNoTime);
  return report;
}

void Run::expect_step(Duration predicted) {
  step_deadline_.begin_plan(predicted);
  limit_waits();
}

void Run::limit_waits() {
  if (!options_.predicts_deadline) return;
  wait_limit_->set(step_deadline_.time());
  devices_.limit_waits(wait_limit_->time());
}

void Run::move_to(StepProgram program, TransitionReport& report) {
  SteadyTime now = std::chrono::steady_clock::now();
  const auto lap = [&now] {
    const Duration part = since(now);
    now += part;
    return part;
  };
  full_.reset();
  short_.reset();
  report.executor_time = lap();
  report.move = move_states(program);
  report.move_time = lap();
  full_ = start(std::move(program));
  report.executor_time += lap();
  if (cache_ != nullptr) {
    cache_->use(full_->step.activity.cached,
                first_holders(states_, static_cast<int>(model_.layers.size())));
  }
  report.cache_time = lap();
}

MoveReport Run::move_states(const StepProgram& program) {
  // Layers freeze first, so that the moments of layers that freeze are not copied.
  on_every_device([&](DeviceId device) {
    for (auto& [layer, state] : states_[device.index()]) {
      set_active(state, program.activity.layers[layer.index()].active);
    }
  });
  const MoveReport report =
      move_layers(states_, program.plan, static_cast<int>(model_.layers.size()),
                  [this](const std::function<void(DeviceId)>& job) { on_every_device(job); });
  settle_states();
  return report;
}

std::vector<Bytes> Run::copied_blocks(const Plan& plan) const {
  const Activity activity = find_activity(structure_, plan.mask);
  std::vector<bool> freezes;
  for (const LayerActivity& layer : activity.layers) freezes.push_back(!layer.active);
  return frazil::copied_blocks(states_, plan, freezes);
}

// Runs a job for every device in its own thread. The calling thread runs the jobs of GPUs, since it
// must itself wait for what GPUs do for it.
void Run::on_every_device(const std::function<void(DeviceId)>& job) {
  if (!devices_[0].is_gpu()) return workers_.run(job);
  for (std::size_t d = 0; d < states_.size(); ++d) job(DeviceId{d});
}

void Run::restore(std::vector<LayerState> layers) {
  ENSURE(full_ == nullptr, "a run is restored before its first plan");
  ENSURE(layers.size() == model_.layers.size(), "a state for each layer");
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layers[l].memory = state_memory_;
    states_[0].at(LayerId{l}) = std::move(layers[l]);
  }
  settle_states();
}

// Brings what a device holds into its memory before its thread touches it.
void Run::settle_states() {
  for (std::size_t d = 0; d < states_.size(); ++d) {
    for (auto& [layer, state] : states_[d]) devices_[d].adopt(state);
  }
  devices_.settle();
}

Run::Program& Run::program_for(int samples) {
  ENSURE(full_ != nullptr, "a plan is in force");
  ENSURE(samples <= full_->step.plan.batch_size, "no more samples than the plan's batch");
  if (samples == full_->step.plan.batch_size) return *full_;
  if (short_ == nullptr || short_->step.plan.batch_size != samples) {
    const Plan shorter = shorten(full_->step.plan, samples);
    try {
      short_ = start(make_step_program(shorter));
    } catch (const InfeasibleError& error) {
      short_ = start(make_step_program(fall_back(shorter)));
      short_->note = "a batch of " + std::to_string(samples) + " samples runs as " +
                     summarize(short_->step.plan) + ", for " + error.what();
    }
  }
  return *short_;
}

// Refuses to go on after a failure, which leaves messages and state behind that no later step may
// meet.
void Run::refuse_after_failure() const {
  ENSURE(failure_.empty(), "a run whose step has failed is made anew; it failed with: " + failure_);
}

void Run::run_job(const std::function<void(DeviceId)>& job,
                  const std::function<std::string(DeviceId)>& place) {
  try {
    workers_.run(job,
                 [&](const std::string& reason) {
                   communicators_[0]->abort(reason);
                   devices_.abandon();
                 },
                 {.time = std::max<Duration>(wait_limit_->time(), std::chrono::seconds(1)),
                  .progress = [this] { return ended_actions_.load(std::memory_order_relaxed); },
                  .place = place});
  } catch (const std::exception& error) {
    failure_ = error.what();
    throw;
  }
}

StepResult Run::step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                     bool record, const std::vector<double>& rate_factors,
                     const std::vector<std::int64_t>& sample_ids) {
  refuse_after_failure();
  ENSURE(rate_factors.empty() || rate_factors.size() == model_.blocks.size(),
         "a factor for every block");
  StepInput input{.step = step,
                  .seed = seed_,
                  .learning_rate = learning_rate,
                  .micro_batches = &micro_batches,
                  .samples = count_samples(micro_batches),
                  .rate_factors = rate_factors,
                  .cache = sample_ids.empty() ? nullptr : cache_,
                  .sample_ids = &sample_ids};
  ENSURE(sample_ids.empty() || sample_ids.size() == static_cast<std::size_t>(input.samples),
         "a number for every sample");
  Program& program = program_for(input.samples);
  ENSURE(micro_batches.size() == static_cast<std::size_t>(program.step.plan.micro_batches()),
         "as many micro-batches as the plan has");
  std::vector<std::vector<LossSample>> losses(states_.size());
  std::vector<Bytes> allocated(states_.size());  // where memory is measured
  const auto book = measurement_.memory ? std::make_shared<AllocationMeter::Book>() : nullptr;
  const SteadyTime begin = std::chrono::steady_clock::now();
  const auto work = [&](DeviceId device) {
    std::optional<AllocationMeter> meter;
    if (book) meter.emplace(book);
    losses[device.index()] = program.executors[device.index()]->run_step(input);
    if (meter) allocated[device.index()] = Bytes{meter->peak_bytes()};
  };
  run_job(work, [&](DeviceId device) { return program.executors[device.index()]->place(); });
  StepResult result;
  result.wall = since(begin);
  step_deadline_.record(result.wall);
  limit_waits();
  result.note = program.note;
  std::vector<LossSample> ordered;
  for (const auto& some : losses) ordered.insert(ordered.end(), some.begin(), some.end());
  std::sort(ordered.begin(), ordered.end());
  for (const LossSample& loss : ordered) result.loss += loss.value;
  for (const auto& executor : program.executors) {
    const std::optional<LayerId> layer = executor->non_finite();
    if (layer)
      result.non_finite_gradient = std::max(*layer, result.non_finite_gradient.value_or(*layer));
  }
  if (measurement_.gradient_squares) result.gradient_squares.resize(model_.layers.size());
  for (Recorder& recorder : recorders_) {
    for (const GradientSquares& squares : recorder.take_gradient_squares()) {
      result.gradient_squares.at(squares.layer.index()) += squares.value;
    }
    std::vector<Span> spans = recorder.take_spans();
    const std::vector<WeightRead> reads = recorder.take_weight_reads();
    result.weight_reads.insert(result.weight_reads.end(), reads.begin(), reads.end());
    if (recorder.memory().is_open()) {
      result.memory.push_back(recorder.memory().take());
      result.memory.back().allocator_peak += allocated[result.memory.back().device.index()];
    }
    if (record) result.spans.insert(result.spans.end(), spans.begin(), spans.end());
  }
  return result;
}

std::vector<LayerSample> Run::take_layer_samples() {
  std::vector<LayerSample> samples;
  for (Recorder& recorder : recorders_) {
    const std::vector<LayerSample> some = recorder.take_layer_samples();
    samples.insert(samples.end(), some.begin(), some.end());
  }
  return samples;
}

}  // namespace frazil
