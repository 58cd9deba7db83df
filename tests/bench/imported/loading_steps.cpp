// Times steps of a configured run on one device with their samples loaded as a training loads them,
// from the configured files, augmented, in the background, beside steps on samples that were made
// before. Both by turns, in an order drawn anew each round. Prints one line of JSON: by round the
// seconds of a step on either side; the samples of a step; CPU seconds that loading a step's
// samples takes by itself.

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "exec/config/configured_data.h"
#include "exec/config/configured_run.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/process_memory.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/transitions/plan_trials.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kWarmUpSteps = 3;
constexpr std::size_t kKeptBatches = 16;

po::options_description describe_flags() {
  return describe_bench_flags({{"run", "run configuration"},
                               {"rounds", "of both sides, default 40"},
                               {"steps", "timed of each side and round, default 20"},
                               {"seed", "of the orders, default 1"}});
}

class LoadedTraining {
 public:
  explicit LoadedTraining(const RunConfig& config)
      : rate_(config.optimizer.learning_rate),
        data_(load_data(config)),
        places_{data_.train.count(), config.batch_size},
        loader_(data_.train, loader_config(config)),
        run_(make_model(config), config.optimizer, config.seed, /*devices=*/1) {
    run_.transition_to(make_bench_plan(
        run_.structure(), {.batch_size = config.batch_size,
                           .micro_batches = config.batch_size / config.micro_batch_size}));
    for (std::size_t i = 0; i < kKeptBatches; ++i) kept_.push_back(loader_.take(next_range()));
  }

  // Returns the mean seconds of a step.
  double time_loaded(int steps) {
    for (int i = 0; i < kWarmUpSteps; ++i) take_loaded_step();
    const SteadyTime start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) take_loaded_step();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    (void)loader_.take(range_);  // what the last step has expected, so that nothing runs on
    return elapsed.count() / steps;
  }

  double time_kept(int steps) {
    const auto take_step = [this] {
      const auto& batch = kept_[static_cast<std::size_t>(step_) % kept_.size()];
      run_.step(step_++, rate_, batch);
    };
    for (int i = 0; i < kWarmUpSteps; ++i) take_step();
    const SteadyTime start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) take_step();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return elapsed.count() / steps;
  }

  // Returns the CPU seconds that the samples of a step take.
  double time_loading(int batches) {
    const double before = cpu_seconds();
    for (int i = 0; i < batches; ++i) (void)loader_.take(next_range());
    return (cpu_seconds() - before) / batches;
  }

 private:
  SampleRange next_range() { return range_ = places_.range(place_++, 1); }

  void take_loaded_step() {
    const SampleRange now = range_;
    const std::vector<Samples> batch = loader_.take(now);
    loader_.expect(next_range());
    run_.step(step_++, rate_, batch, false, {}, {}, now);
  }

  double rate_;
  Dataset data_;
  RunPlaces places_;
  SampleLoader loader_;
  Run run_;
  std::vector<std::vector<Samples>> kept_;
  Step step_ = 0;
  Step place_ = 0;
  SampleRange range_;  // of the next step
};

ExitCode measure(const Flags& flags) {
  const RunConfig config = read_run_config(required_text(flags, "run"));
  const int rounds = integer_or(flags, "rounds", 40, 1, 10'000);
  const int steps = integer_or(flags, "steps", 20, 1, 10'000);
  LoadedTraining training(config);
  std::array<std::vector<double>, 2> seconds;  // loaded, kept
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t side : draw_order(2, read_seed(flags), round)) {
      seconds[side].push_back(side == 0 ? training.time_loaded(steps) : training.time_kept(steps));
    }
  }
  const nlohmann::ordered_json record{{"loaded_s", seconds[0]},
                                      {"kept_s", seconds[1]},
                                      {"samples", config.batch_size},
                                      {"loading_cpu_s", training.time_loading(steps)}};
  std::printf("%s\n", record.dump().c_str());
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_loading_steps", "Times steps with their samples loaded beside them.",
                  "bench_loading_steps --run FILE [--rounds N] [--steps N]"};
  return run_verb(verb, argc, argv, describe_flags(), measure);
}
