#include "exec/run.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "exec/in_process_communicator.h"
#include "exec/optimizer.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Duration since(SteadyTime start) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

int count_samples(const std::vector<Samples>& micro_batches) {
  return std::accumulate(
      micro_batches.begin(), micro_batches.end(), 0,
      [](int sum, const Samples& s) { return sum + static_cast<int>(s.count()); });
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
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
      states_(static_cast<std::size_t>(devices)),
      communicators_(make_in_process_communicators(
          devices,
          {.deadline = options.deadline, .check_order = options.order == MessageOrder::kAsSent})),
      origin_(std::chrono::steady_clock::now()),
      workers_(devices) {
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    states_[0][LayerId{l}] = make_initial_state(model_, LayerId{l}, seed);
  }
  for (int d = 0; d < devices; ++d) recorders_.emplace_back(DeviceId{d}, origin_);
}

Run::~Run() = default;

const Plan& Run::plan() const {
  ENSURE(full_ != nullptr, "a plan is in force");
  return full_->step.plan;
}

std::unique_ptr<Run::Program> Run::start(const Plan& plan) {
  auto program = std::make_unique<Program>();
  program->step =
      make_program(plan, structure_, workers_.devices(), optimizer_.clip_norm > 0, options_.order);
  for (std::size_t d = 0; d < states_.size(); ++d) {
    program->executors.push_back(
        std::make_unique<Executor>(model_, optimizer_, program->step, DeviceId{d}, states_[d],
                                   *communicators_[d], recorders_[d], measurement_));
  }
  return program;
}

SwitchReport Run::switch_to(const Plan& plan) {
  // Made before anything moves: a plan that cannot run must leave the old one in force.
  (void)make_program(plan, structure_, workers_.devices(), optimizer_.clip_norm > 0,
                     options_.order);
  SwitchReport report;
  SteadyTime start_of_part = std::chrono::steady_clock::now();
  full_.reset();
  short_.reset();
  report.move = move_layers(states_, plan, static_cast<int>(model_.layers.size()));
  report.move_time = since(start_of_part);
  start_of_part = std::chrono::steady_clock::now();
  full_ = start(plan);
  for (DeviceState& state : states_) {
    for (auto& [layer, layer_state] : state) {
      set_active(layer_state, full_->step.activity.layers[layer.index()].active);
    }
  }
  report.start_time = since(start_of_part);
  return report;
}

Run::Program& Run::program_for(int samples) {
  ENSURE(full_ != nullptr, "a plan is in force");
  if (samples == full_->step.plan.batch_size) return *full_;
  if (short_ == nullptr || short_->step.plan.batch_size != samples) {
    const Plan shorter = shorten(full_->step.plan, samples);
    try {
      short_ = start(shorter);
    } catch (const InfeasibleError& error) {
      short_ = start(fall_back(shorter));
      short_->note = "a batch of " + std::to_string(samples) + " samples runs as " +
                     summarize(short_->step.plan) + ", for " + error.what();
    }
  }
  return *short_;
}

StepResult Run::step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                     bool record) {
  StepInput input{.step = step,
                  .seed = seed_,
                  .learning_rate = learning_rate,
                  .micro_batches = &micro_batches,
                  .samples = count_samples(micro_batches)};
  Program& program = program_for(input.samples);
  ENSURE(micro_batches.size() == static_cast<std::size_t>(program.step.plan.micro_batches()),
         "as many micro-batches as the plan has");
  std::vector<std::vector<LossSample>> losses(states_.size());
  const SteadyTime begin = std::chrono::steady_clock::now();
  workers_.run(
      [&](DeviceId device) {
        losses[device.index()] = program.executors[device.index()]->run_step(input);
      },
      [&](const std::string& reason) { communicators_[0]->abort(reason); });
  StepResult result;
  result.wall = since(begin);
  result.note = program.note;
  std::vector<LossSample> ordered;
  for (const auto& some : losses) ordered.insert(ordered.end(), some.begin(), some.end());
  std::sort(ordered.begin(), ordered.end());
  for (const LossSample& loss : ordered) result.loss += loss.value;
  for (Recorder& recorder : recorders_) {
    std::vector<Span> spans = recorder.take_spans();
    const std::vector<WeightRead> reads = recorder.take_weight_reads();
    result.weight_reads.insert(result.weight_reads.end(), reads.begin(), reads.end());
    if (recorder.memory().is_open()) result.memory.push_back(recorder.memory().take());
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

Run::Evaluation Run::evaluate(const Samples& samples, int micro_batch_size) const {
  const c10::NoGradGuard no_grad;
  std::vector<const Tensors*> parameters;
  for (const LayerState* state : first_holders(states_, static_cast<int>(model_.layers.size()))) {
    parameters.push_back(&state->parameters);
  }
  Evaluation evaluation;
  for (std::int64_t first = 0; first < samples.count(); first += micro_batch_size) {
    const std::int64_t count = std::min<std::int64_t>(micro_batch_size, samples.count() - first);
    const Samples some = narrow(samples, first, count);
    const std::vector<Tensors> outputs = forward_model(model_, parameters, some.inputs);
    for (std::size_t l = 0; l < outputs.size(); ++l) {
      if (!model_.has_loss(LayerId{l})) continue;
      const at::Tensor loss = model_.layers[l].loss(outputs[l], some.labels);
      evaluation.loss += loss.item<double>() * static_cast<double>(count);
    }
    const at::Tensor& answers = outputs.back().at(0);
    if (answers.dim() != 2) continue;
    evaluation.accuracy +=
        static_cast<double>(answers.argmax(1).eq(some.labels).sum().item<std::int64_t>());
  }
  evaluation.loss /= static_cast<double>(samples.count());
  evaluation.accuracy /= static_cast<double>(samples.count());
  return evaluation;
}

std::uint64_t Run::weight_hash() const {
  const std::vector<const LayerState*> holders =
      first_holders(states_, static_cast<int>(model_.layers.size()));
  for (const DeviceState& state : states_) {
    for (const auto& [layer, replica] : state) {
      const LayerState& first = *holders[layer.index()];
      ENSURE(same_bits(replica.parameters, first.parameters) &&
                 same_bits(replica.first_moment, first.first_moment) &&
                 same_bits(replica.second_moment, first.second_moment),
             "replicas hold the same bits");
    }
  }
  return hash_states(holders);
}

}  // namespace frazil
