// clang-format off
// Measures the throughput of each phase of PipeTransformer's staircase (He et al. 2021), predicted
// and measured: as layers freeze, one pipeline of 8 stages becomes two of 4, four of 2, eight of 1.
// The model is profiled on the same cores, stages are cut by the exact partition of the profile's
// times under each mask, then the run walks down the staircase, round after round.
//   measured   samples per second, mean steps of one round; the median over the rounds and its 95 %
//              bootstrap interval
//   predicted  samples per second of the simulated step of that plan
// Times on fewer cores than devices mean nothing, so the program refuses them without --anyway.
// clang-format on

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "analysis/ratio_interval.h"
#include "analysis/tables/table.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/train/progress.h"
#include "planner/partition/partition.h"
#include "planner/plan/activity.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"
#include "tests/bench/transitions/plan_trials.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kMostDevices = 16;

struct Options {
  BenchModel model;
  int devices = 8;
  int micro_batches = 16;
  std::vector<int> frozen;  // frozen transformer layers, by phase
  int rounds = 8;
  int profile_rounds = 4;
  Stretch stretch;
  std::uint64_t seed = 1;
  bool quiet = false;
};

struct Phase {
  int frozen = 0;
  Plan plan;
  double predicted = 0;         // seconds of a step
  std::vector<double> seconds;  // mean step of each round
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "tiny (default) or wide"},
       {"devices", "a power of two from 2 to 16, default 8"},
       {"frozen",
        "transformer layers frozen in each phase, a comma list that ascends; default 0, 1/2, 3/4, "
        "7/8, ... of all"},
       {"micro-batches",
        "of a step: divided by the devices, a divisor of the batch (64, of "
        "wide 32); default 16"},
       {"rounds", "down the staircase, default 8"},
       {"steps", "timed of each phase and round, default 6"},
       {"warmup", "steps before them that do not count, default 2"},
       {"profile-rounds", "of 8 steps, default 4"},
       {"seed", "of weights, data and intervals, default 1"}},
      {{"anyway", "also on fewer cores than devices"}, {"quiet", "no progress"}});
}

int count_phases(int devices) {
  int phases = 1;
  for (; devices > 1; devices /= 2) ++phases;
  return phases;
}

std::vector<int> read_frozen(const Flags& flags, int phases, int layers) {
  std::vector<int> frozen;
  if (const auto list = optional_text(flags, "frozen")) {
    frozen = checked_flags("--frozen", *list, 0, layers);
    if (static_cast<int>(frozen.size()) != phases ||
        !std::is_sorted(frozen.begin(), frozen.end())) {
      refuse_flags("--frozen " + *list, std::to_string(phases) + " numbers that ascend");
    }
    return frozen;
  }
  for (int phase = 0; phase < phases; ++phase) frozen.push_back(layers - (layers >> phase));
  return frozen;
}

Options read_options(const Flags& flags) {
  Options options;
  options.model = find_bench_model(optional_text(flags, "model").value_or("tiny"));
  options.devices = integer_or(flags, "devices", options.devices, 2, kMostDevices);
  if ((options.devices & (options.devices - 1)) != 0) {
    refuse_flags("--devices " + std::to_string(options.devices), "a power of two");
  }
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores < options.devices && !is_set(flags, "anyway")) {
    refuse_flags("a machine of " + std::to_string(cores) + " cores",
                 std::to_string(options.devices) +
                     ", a core for each device, or --anyway for times that mean nothing");
  }
  options.frozen = read_frozen(flags, count_phases(options.devices), options.model.config.blocks);
  const int batch = options.model.batch_size;
  options.micro_batches = integer_or(flags, "micro-batches", options.micro_batches, 1, batch);
  if (batch % options.micro_batches != 0 || options.micro_batches % options.devices != 0) {
    refuse_flags("--micro-batches " + std::to_string(options.micro_batches),
                 "a multiple of " + std::to_string(options.devices) + " that divides " +
                     std::to_string(batch));
  }
  options.rounds = integer_or(flags, "rounds", options.rounds, 1, 10'000);
  options.stretch.steps = integer_or(flags, "steps", options.stretch.steps, 1, 10'000);
  options.stretch.warm_up = integer_or(flags, "warmup", options.stretch.warm_up, 0, 10'000);
  options.profile_rounds = integer_or(flags, "profile-rounds", options.profile_rounds, 1, 10'000);
  options.seed = read_seed(flags);
  options.quiet = is_set(flags, "quiet");
  return options;
}

// Returns what each layer computes under a mask, for a micro-batch.
std::vector<Duration> layer_times(const ModelProfile& profile, const FreezeMask& mask) {
  const Activity activity = find_activity(profile, mask);
  std::vector<Duration> times;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    const CostSample& cost = profile.layers[l].costs.front();
    const LayerActivity& own = activity.layers[l];
    Duration time = activity.backward(LayerId{l}) ? cost.forward : cost.forward_frozen;
    if (own.input_gradient) time += cost.backward_input;
    if (own.weight_gradient) {
      time += own.input_gradient ? cost.backward_weight : cost.backward_weight_alone;
    }
    times.push_back(time);
  }
  return times;
}

// Makes a plan with `stages` stages per replica on all devices.
Plan make_phase_plan(const ModelProfile& profile, const Options& options, int stages, int frozen) {
  Plan plan = make_bench_plan(profile, {.devices = stages,
                                        .replicas = options.devices / stages,
                                        .batch_size = options.model.batch_size,
                                        .micro_batches = options.micro_batches});
  if (frozen > 0) plan.mask = FreezeMask::frozen_prefix(plan.mask.blocks(), BlockId{frozen});
  ChainCosts costs;
  costs.layer = layer_times(profile, plan.mask);
  costs.boundary.assign(costs.layer.size() - 1, Duration{0});
  costs.time_ppm.assign(static_cast<std::size_t>(stages), 1'000'000);
  const auto cut = partition_into(costs, stages);
  if (!cut) throw InfeasibleError("more stages than the model has layers");
  for (Pipeline& pipeline : plan.pipelines) {
    std::vector<DeviceId> devices;
    for (const Stage& stage : pipeline.stages) devices.push_back(stage.devices.front());
    const std::vector<MicroBatches> owned = pipeline.micro_batches;
    pipeline =
        make_pipeline(static_cast<int>(profile.layers.size()), cut->cuts, devices, owned.front());
  }
  return plan;
}

std::vector<Phase> plan_phases(const MeasuredProfile& measured, const Options& options) {
  std::vector<Phase> phases;
  int stages = options.devices;
  for (const int frozen : options.frozen) {
    Phase& phase = phases.emplace_back();
    phase.frozen = frozen;
    phase.plan = make_phase_plan(measured.profile, options, stages, frozen);
    const PlanSimulation simulated =
        simulate_plan(phase.plan, {measured.profile, measured.cluster}, {});
    phase.predicted = std::chrono::duration<double>(simulated.makespan).count();
    stages /= 2;
  }
  return phases;
}

std::vector<Phase> walk(const Options& options) {
  PlanTrials trials(options.model, options.micro_batches, options.seed, options.devices);
  Progress profiling("profile", options.profile_rounds + 1, options.quiet, "rounds");
  const MeasuredProfile measured =
      trials.measure(options.profile_rounds, [&](int done, int) { profiling.update(done, ""); });
  std::vector<Phase> phases = plan_phases(measured, options);
  Progress running("staircase", options.rounds, options.quiet, "rounds");
  for (int round = 0; round < options.rounds; ++round) {
    for (Phase& phase : phases) {
      phase.seconds.push_back(trials.time_steps(phase.plan, options.stretch));
    }
    running.update(round + 1, "");
  }
  return phases;
}

std::string print_phases(const std::vector<Phase>& phases, const Options& options) {
  Table table{{"frozen", "plan", "predicted samples/s", "measured samples/s (95 % interval)",
               "predicted / measured"},
              {}};
  for (const Phase& phase : phases) {
    std::vector<double> rates;
    for (const double each : phase.seconds) rates.push_back(options.model.batch_size / each);
    const RatioInterval rate = bootstrap_ratio(rates, options.seed);
    const double predicted = options.model.batch_size / phase.predicted;
    table.rows.push_back({std::to_string(phase.frozen), summarize(phase.plan), fixed(predicted, 1),
                          to_range_text(rate.median, rate.low, rate.high, 1),
                          fixed(predicted / rate.median, 3)});
  }
  return to_text(table);
}

ExitCode print_staircase(const Flags& flags) {
  const Options options = read_options(flags);
  const ForeignLoad load;
  const std::vector<Phase> phases = walk(options);
  const std::optional<double> others = load.cores();
  std::printf("%s", print_phases(phases, options).c_str());
  std::printf("%d rounds of %d steps; %s\n", options.rounds, options.stretch.steps,
              to_load_text(others).c_str());
  if (static_cast<int>(std::thread::hardware_concurrency()) < options.devices) {
    std::printf("fewer cores than devices: the times mean nothing\n");
  }
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  const Verb verb{"bench_staircase",
                  "Times one pipeline of many stages that becomes many pipelines of one.",
                  "bench_staircase [--devices 8] [--model tiny|wide] [--rounds N] [--anyway]"};
  return run_verb(verb, argc, argv, describe_flags(), print_staircase);
}
