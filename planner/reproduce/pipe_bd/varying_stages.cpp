#include "planner/reproduce/pipe_bd/varying_stages.h"

#include <cmath>

#include "planner/reproduce/pipe_bd/pipe_bd_workloads.h"

namespace frazil {
namespace {

double find_mean_ms(const VaryingOptions& options, bool barrier) {
  const Workload workload =
      make_relayed(make_balanced_times(), {{1, 1, 1, 1}, {0, 1, 2, 3, 4}, Duration{0}});
  LoadedSteps training(Loader{});
  training.append(price_step(workload, barrier), 2 * options.steps);
  Duration sum{0};
  for (const Duration step : training.draw_periods({.seed = options.seed, .runs = options.runs})) {
    sum += step;
  }
  return to_ms(sum) / options.runs;
}

bool is_near(double found_ms, double known_ms) {
  return std::abs(found_ms / known_ms - 1) <= kVaryingError;
}

}  // namespace

VaryingResult simulate_varying(const VaryingOptions& options) {
  return {.options = options,
          .barrier_ms = find_mean_ms(options, /*barrier=*/true),
          .decoupled_ms = find_mean_ms(options, /*barrier=*/false)};
}

bool is_as_known(const VaryingResult& result) {
  return is_near(result.barrier_ms, kBarrierStepMs) &&
         is_near(result.decoupled_ms, kDecoupledStepMs);
}

}  // namespace frazil
