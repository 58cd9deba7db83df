#include "exec/run/run.h"

#include <algorithm>
#include <utility>

#include "exec/communication/in_process_communicator.h"
#include "exec/devices/steady_time.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {

Run::Run(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed, int devices,
         const RunOptions& options)
    : options_(options),
      pool_(std::move(model), optimizer, seed, {.devices = devices, .count = devices}, options) {
  pool_.join(
      make_in_process_communicators(devices, {.deadline = options.deadline,
                                              .check_order = options.order == MessageOrder::kAsSent,
                                              .limit = pool_.wait_limit()}));
}

Run::~Run() = default;

TransitionReport Run::transition_to(const Plan& plan) {
  TransitionReport report;
  SteadyTime now = std::chrono::steady_clock::now();
  const auto lap = [&now] {
    const Duration part = since(now);
    now += part;
    return part;
  };
  // The program is made before anything moves: a plan that cannot run must leave the old one in
  // force.
  pool_.prepare(plan);
  report.program_time = lap();
  report.move = pool_.take();
  report.move_time = lap();
  pool_.adopt();
  report.executor_time = lap();
  if (pool_.has_cache()) {
    const auto cached = static_cast<std::size_t>(pool_.program().activity.cached);
    pool_.use_cache(hash_by_layer(pool_.cached_weights(), cached));
  }
  report.cache_time = lap();
  expect_step(kNoTime);
  return report;
}

void Run::expect_step(Duration predicted) {
  step_deadline_.begin_plan(predicted);
  limit_waits();
}

void Run::limit_waits() {
  if (options_.predicts_deadline) pool_.limit_waits(step_deadline_.time());
}

StepResult Run::step(Step step, double learning_rate, const std::vector<Samples>& micro_batches,
                     bool record, const std::vector<double>& rate_factors,
                     const std::vector<std::int64_t>& sample_ids) {
  const StepOrder order{.step = step,
                        .learning_rate = learning_rate,
                        .rate_factors = rate_factors,
                        .measurement = measurement_,
                        .records = record,
                        .uses_cache = !sample_ids.empty()};
  const SteadyTime begin = std::chrono::steady_clock::now();
  StepAnswer answer = pool_.step(order, micro_batches, sample_ids);
  StepResult result;
  result.wall = since(begin);
  step_deadline_.record(result.wall);
  limit_waits();
  result.note = std::move(answer.note);
  std::sort(answer.losses.begin(), answer.losses.end());
  for (const LossSample& loss : answer.losses) result.loss += loss.value;
  result.non_finite_gradient = answer.non_finite_gradient;
  if (measurement_.gradient_squares) result.gradient_squares.resize(model().layers.size());
  for (const GradientSquares& squares : answer.gradient_squares) {
    result.gradient_squares.at(squares.layer.index()) += squares.value;
  }
  result.spans = std::move(answer.spans);
  result.memory = std::move(answer.memory);
  result.weight_reads = std::move(answer.weight_reads);
  return result;
}

Run::Evaluation Run::evaluate(const Samples& samples, int micro_batch_size) {
  EvaluationAnswer answer = pool_.evaluate(samples, micro_batch_size);
  std::sort(answer.losses.begin(), answer.losses.end());
  Evaluation evaluation;
  for (const LossTerm& term : answer.losses) evaluation.loss += term.value;
  const auto count = static_cast<double>(samples.count());
  evaluation.loss /= count;
  evaluation.accuracy = static_cast<double>(answer.right) / count;
  return evaluation;
}

std::vector<std::vector<double>> Run::sketch_blocks(const Samples& probe) {
  std::vector<std::vector<double>> sketches(model().blocks.size());
  for (BlockNumbers& found : pool_.sketch_blocks(probe)) {
    sketches.at(found.block.index()) = std::move(found.values);
  }
  return sketches;
}

std::vector<double> Run::interval_gradients() {
  std::vector<BlockNumbers> found = pool_.interval_gradients();
  std::sort(found.begin(), found.end(),
            [](const BlockNumbers& a, const BlockNumbers& b) { return a.layer < b.layer; });
  std::vector<double> norms(model().blocks.size());
  for (const BlockNumbers& numbers : found) {
    for (const double norm : numbers.values) norms.at(numbers.block.index()) += norm;
  }
  return norms;
}

std::uint64_t Run::weight_hash() {
  const std::vector<std::uint64_t> hashes = hash_by_layer(pool_.digests(), model().layers.size());
  return hash_bytes(hashes.data(), hashes.size() * sizeof hashes[0]);
}

}  // namespace frazil
