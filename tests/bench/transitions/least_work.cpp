#include "tests/bench/transitions/least_work.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "planner/plan/activity.h"

namespace frazil {
namespace {

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// Measures the bytes per second of one core that copies records in random order.
double copy_rate(std::int64_t record) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(8, (1 << 26) / record));
  const auto size = static_cast<std::size_t>(record);
  const std::vector<char> from(count * size, 1);
  std::vector<char> into(8 * size, 2);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(into.data() + i % 8 * size, from.data() + order[i] * size, size);
  }
  return static_cast<double>(count * size) /
         seconds(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start));
}

// Sums the least work, in seconds, of steps under one plan: of samples, of the update, of filling
// the cache.
class StepWork {
 public:
  StepWork(const ModelProfile& profile, const Plan& plan)
      : profile_(profile), activity_(find_activity(profile, plan)) {}

  double of_samples(std::int64_t samples) const {
    double work = 0;
    for (std::size_t l = 0; l < profile_.layers.size(); ++l) {
      const CostSample& cost = profile_.layers[l].costs.front();
      const LayerActivity& own = activity_.layers[l];
      const LayerId layer{l};
      if (activity_.is_cached(layer)) continue;
      Duration time = activity_.backward(layer) ? cost.forward : cost.forward_frozen;
      if (own.input_gradient) time += cost.backward_input;
      if (own.weight_gradient) {
        time += own.input_gradient ? cost.backward_weight : cost.backward_weight_alone;
      }
      work += seconds(time) / cost.micro_batch_size;
    }
    return work * static_cast<double>(samples);
  }
  double of_update() const {
    double work = 0;
    for (std::size_t l = 0; l < profile_.layers.size(); ++l) {
      if (activity_.layers[l].weight_gradient) work += seconds(profile_.layers[l].update);
    }
    return work;
  }
  double of_fill(int begin, std::int64_t samples) const {
    double work = 0;
    for (int l = begin; l < activity_.cached; ++l) {
      const CostSample& cost = profile_.layers[static_cast<std::size_t>(l)].costs.front();
      work += seconds(cost.forward_frozen) / cost.micro_batch_size;
    }
    return work * static_cast<double>(samples);
  }
  int cached() const { return activity_.cached; }

 private:
  const ModelProfile& profile_;
  Activity activity_;
};

}  // namespace

StepRange steps_of(const TrainResult& result, std::size_t phase) {
  const bool is_last = phase + 1 == result.phases.size();
  return {result.phases[phase].first_step,
          is_last ? result.trace.steps : result.phases[phase + 1].first_step};
}

LeastWork find_work(const TrainResult& result, const ModelProfile& profile, const RunConfig& config,
                    std::int64_t samples) {
  const Step steps_per_epoch = (samples + config.batch_size - 1) / config.batch_size;
  LeastWork work;
  int filled = 0;
  for (std::size_t p = 0; p < result.phases.size(); ++p) {
    const StepWork of_step(profile, result.phases[p].plan);
    const StepRange steps = steps_of(result, p);
    for (Step step = steps.first; step < steps.end; ++step) {
      const std::int64_t first = step % steps_per_epoch * config.batch_size;
      work.compute +=
          of_step.of_samples(std::min<std::int64_t>(config.batch_size, samples - first)) +
          of_step.of_update();
    }
    work.fill += of_step.of_fill(std::min(filled, of_step.cached()), samples);
    filled = of_step.cached();
  }
  return work;
}

double find_reading(const CacheReport& cache) {
  if (cache.bytes_per_sample.count == 0) return 0;
  const auto found = static_cast<double>(cache.counts.found + cache.counts.found_before);
  return found * static_cast<double>(cache.bytes_per_sample.count) /
         copy_rate(cache.bytes_per_sample.count);
}

}  // namespace frazil
