#include "tests/bench/transitions/plan_trials.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "exec/models/vit.h"

namespace frazil {
namespace {

constexpr int kBatches = 4;  // batches of data, used again and again

RunConfig make_config(const BenchModel& model, int micro_batches, std::uint64_t seed) {
  RunConfig config;
  config.model = model.config;
  config.optimizer = momentum_sgd();
  config.batch_size = model.batch_size;
  config.micro_batch_size = model.batch_size / micro_batches;
  config.seed = seed;
  return config;
}

}  // namespace

PlanTrials::PlanTrials(const BenchModel& model, int micro_batches, std::uint64_t seed, int devices)
    : config_(make_config(model, micro_batches, seed)),
      data_(make_synthetic(kBatches * model.batch_size, 1, model.config.channels,
                           model.config.image, model.config.classes, seed)),
      order_(epoch_order(data_.train.count(), seed, 0)),
      devices_(devices),
      run_(make_vit(model.config), config_.optimizer, seed, devices) {}

MeasuredProfile PlanTrials::measure(int rounds,
                                    const std::function<void(int, int)>& progress) const {
  ProfileOptions options;
  options.micro_batch_sizes = {config_.micro_batch_size};
  options.devices = devices_;
  options.rounds = rounds;
  options.memory_limit = Bytes{kLargestQuantity};
  return measure_profile(config_, data_, options, progress);
}

double PlanTrials::time_steps(const Plan& plan, const Stretch& stretch) {
  run_.transition_to(plan);
  for (int i = 0; i < stretch.warm_up; ++i) time_step();
  double sum = 0;
  for (int i = 0; i < stretch.steps; ++i) sum += time_step();
  return sum / stretch.steps;
}

double PlanTrials::time_step() {
  const SteadyTime start = std::chrono::steady_clock::now();
  const std::vector<Samples> micro_batches =
      gather_micro_batches(data_.train, order_, step_ * config_.batch_size, config_.batch_size,
                           config_.micro_batch_size);
  run_.step(step_++, config_.optimizer.learning_rate, micro_batches);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::size_t> draw_order(std::size_t count, std::uint64_t seed, int round) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(round));
  for (std::size_t left = count; left > 1; --left) {
    std::swap(order[left - 1], order[random() % left]);
  }
  return order;
}

}  // namespace frazil
