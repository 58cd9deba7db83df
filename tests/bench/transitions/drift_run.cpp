// clang-format off
// What watching for drift brings and costs, on the digits and two devices:
//   slowed   in the middle of a run device 1 begins to take `percent` longer (it spins). When does
//            the run re-plan, and what is its throughput then, beside that of a run that begins
//            with the planner's best plan for devices of these speeds, slowed from its first step?
//   quiet    nothing is slowed: how often does a run of so many steps re-plan (A/A)?
//   watched  steps of runs that watch over steps of runs that do not, in pairs; the median and its
//            95 % bootstrap interval over the pairs
// Nothing freezes. All plans are by one profile, measured first.
// clang-format on

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/ratio_interval.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "exec/profile/profiler.h"
#include "exec/train/trainer.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/verbs/command_line.h"
#include "profiles/text_file.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

struct Options {
  RunConfig config;
  int percent = 30;
  int rounds = 3;
  Step steps = 400;
  Step quiet_steps = 2'000;
  int pairs = 10;
  std::string record;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"run", "configuration, default exec/runs/digits.json; nothing freezes"},
       {"percent", "by which device 1 is slowed, default 30"},
       {"rounds", "of a slowed run, one that is planned for it and an unwatched one, default 3"},
       {"steps", "of these runs, default 400"},
       {"quiet-steps", "default 2000"},
       {"pairs", "of runs of 200 steps, default 10; 0: none"},
       {"micro-batch", "samples, default 2"},
       {"seed", "of weights, data and intervals, default 1"},
       {"record", "file for the costs of the quiet run's steps, a line each"}});
}

Options read_options(const Flags& flags) {
  Options options;
  options.config = read_run_config(optional_text(flags, "run").value_or("exec/runs/digits.json"));
  options.config.freeze = {};
  options.config.micro_batch_size = integer_or(flags, "micro-batch", 2, 1, 32);
  options.config.epochs = 1'000;
  options.config.seed = read_seed(flags);
  options.percent = integer_or(flags, "percent", 30, 0, 1'000);
  options.rounds = integer_or(flags, "rounds", 3, 0, 1'000);
  options.steps = integer_or(flags, "steps", 400, 100, 100'000);
  options.quiet_steps = integer_or(flags, "quiet-steps", 2'000, 0, 10'000'000);
  options.pairs = integer_or(flags, "pairs", 10, 0, 10'000);
  options.record = optional_text(flags, "record").value_or("");
  return options;
}

TrainOptions make_options(const Options& options, const MeasuredProfile& measured, bool watches,
                          Step steps) {
  TrainOptions training;
  training.config = options.config;
  training.config.drift.kind = watches ? DriftConfig::Kind::kOn : DriftConfig::Kind::kOff;
  training.profile = measured.profile;
  training.cluster = measured.cluster;
  training.max_steps = steps;
  return training;
}

void slow_down(TrainOptions& training, int percent, Step from) {
  training.planted.slow = [percent, from](Step step, Measurement& measurement) {
    measurement.slow_device = step >= from ? 1 : -1;
    measurement.slow_percent = percent;
  };
}

int print_drifts(const FreezeTrace& trace) {
  int replanned = 0;
  for (const FreezeEvent& event : trace.events) {
    const auto* drift = std::get_if<DriftEvent>(&event.what);
    if (drift == nullptr) continue;
    replanned += drift->change == DriftChange::kReplanned ? 1 : 0;
    std::printf("  step %lld: %s, %s: %s (%lld windows left out)\n",
                static_cast<long long>(event.step), drift->reason.c_str(),
                std::string(name_of(drift->change)).c_str(), drift->note.c_str(),
                static_cast<long long>(drift->excluded));
  }
  return replanned;
}

// Samples per second of the steps of a log in [first, end), by their median time.
double rate_of(const std::vector<Duration>& times, Step first, int batch) {
  std::vector<double> late;
  for (auto step = static_cast<std::size_t>(first); step < times.size(); ++step) {
    late.push_back(static_cast<double>(times[step].count()));
  }
  return late.empty() ? 0 : batch * 1e9 / find_spread(std::move(late)).median;
}

struct Trained {
  TrainResult result;
  std::vector<Duration> times;  // by step
};

// Times steps by what is told after each.
Trained run_timed(const TrainOptions& training, const Dataset& data) {
  Trained trained;
  auto last = std::chrono::steady_clock::now();
  trained.result = train(training, data, [&](const TrainProgress& now) {
    const auto time = std::chrono::steady_clock::now();
    if (now.event.empty() && now.step == static_cast<Step>(trained.times.size()) + 1) {
      trained.times.push_back(time - last);
    }
    last = time;
  });
  return trained;
}

// The rates of one round in samples per second, all with device 1 slowed.
struct Rates {
  double watched = 0;
  double unwatched = 0;
  double best = 0;
};

Rates take_round(const Options& options, const MeasuredProfile& measured, const Dataset& data) {
  const Step middle = options.steps / 2;
  const auto rate = [&](const Trained& trained) {
    return rate_of(trained.times, middle + 30, options.config.batch_size);
  };
  TrainOptions watched = make_options(options, measured, true, options.steps);
  slow_down(watched, options.percent, middle);
  const Trained drifted = run_timed(watched, data);
  print_drifts(drifted.result.trace);
  TrainOptions best = make_options(options, measured, false, options.steps);
  best.cluster.devices[1].time_ppm =
      best.cluster.devices[1].time_ppm * (100 + options.percent) / 100;
  slow_down(best, options.percent, 0);
  const Trained known = run_timed(best, data);
  TrainOptions kept = make_options(options, measured, false, options.steps);
  slow_down(kept, options.percent, middle);
  const Rates rates{rate(drifted), rate(run_timed(kept, data)), rate(known)};
  std::printf("  %s; then %s; best %s: %s samples/s, unwatched %s, best %s\n",
              summarize(drifted.result.phases.front().plan).c_str(),
              summarize(drifted.result.phases.back().plan).c_str(),
              summarize(known.result.phases.back().plan).c_str(), fixed(rates.watched, 1).c_str(),
              fixed(rates.unwatched, 1).c_str(), fixed(rates.best, 1).c_str());
  return rates;
}

void print_slowed(const Options& options, const MeasuredProfile& measured, const Dataset& data) {
  if (options.rounds == 0) return;
  std::printf("slowed: device 1 takes %d %% longer from step %lld on\n", options.percent,
              static_cast<long long>(options.steps / 2));
  std::vector<double> of_best;
  std::vector<double> of_unwatched;
  for (int round = 0; round < options.rounds; ++round) {
    const Rates rates = take_round(options, measured, data);
    of_best.push_back(rates.watched / rates.best);
    of_unwatched.push_back(rates.watched / rates.unwatched);
  }
  const Spread best = find_spread(of_best);
  const Spread unwatched = find_spread(of_unwatched);
  std::printf(
      "  30 steps after it began: %s of the best plan's throughput (aim: 0.95), %s of an "
      "unwatched run's\n",
      to_range_text(best.median, best.least, best.most, 3).c_str(),
      to_range_text(unwatched.median, unwatched.least, unwatched.most, 3).c_str());
}

std::string to_line(Step step, const StepCosts& costs, double cores) {
  std::string line = std::to_string(step) + "," + fixed(cores, 3);
  for (const Duration device : costs.devices) line += "," + std::to_string(device.count());
  for (const LayerTime& layer : costs.layers) {
    line += "," + std::to_string(layer.device.value) + ":" + std::to_string(layer.layer.value) +
            ":" + std::to_string(layer.time.count());
  }
  return line + "\n";
}

void print_quiet(const Options& options, const MeasuredProfile& measured, const Dataset& data) {
  if (options.quiet_steps == 0) return;
  TrainOptions quiet = make_options(options, measured, true, options.quiet_steps);
  std::string lines;
  RecentLoad load;
  if (!options.record.empty()) {
    quiet.planted.costs = [&](Step step, const StepCosts& predicted, const StepCosts& taken) {
      if (lines.empty()) lines = to_line(-1, predicted, 0);
      lines += to_line(step, taken, load.cores(std::chrono::milliseconds(100)).value_or(0));
      return taken;
    };
  }
  const TrainResult result = train(quiet, data);
  std::printf("quiet: %lld steps\n", static_cast<long long>(options.quiet_steps));
  const int replanned = print_drifts(result.trace);
  std::printf("  re-planned %d times (aim: 0); %s\n", replanned,
              to_load_text(result.foreign_cores).c_str());
  if (!options.record.empty()) write_text_file(options.record, lines);
}

void print_watched(const Options& options, const MeasuredProfile& measured, const Dataset& data,
                   std::uint64_t seed) {
  constexpr Step kSteps = 200;
  std::vector<double> ratios;
  for (int pair = 0; pair < options.pairs; ++pair) {
    double times[2] = {0, 0};
    for (int i = 0; i < 2; ++i) {
      const bool watches = (pair + i) % 2 == 0;
      const Trained trained = run_timed(make_options(options, measured, watches, kSteps), data);
      times[watches ? 1 : 0] = 1 / rate_of(trained.times, 20, options.config.batch_size);
    }
    ratios.push_back(times[1] / times[0]);
  }
  if (ratios.empty()) return;
  const RatioInterval ratio = bootstrap_ratio(ratios, seed);
  std::printf("watched: step over unwatched %s; bar 1.005: %s\n",
              to_range_text(ratio.median, ratio.low, ratio.high, 4).c_str(),
              verdict_at_most(ratio.low, ratio.high, 1.005).c_str());
}

ExitCode print_runs(const Flags& flags) {
  const Options options = read_options(flags);
  const Dataset data = load_data(options.config);
  ProfileOptions profiling;
  profiling.micro_batch_sizes = {options.config.micro_batch_size};
  profiling.rounds = 6;
  const MeasuredProfile measured = measure_profile(options.config, data, profiling);
  const ForeignLoad load;
  print_slowed(options, measured, data);
  print_quiet(options, measured, data);
  print_watched(options, measured, data, options.config.seed);
  std::printf("%s\n", to_load_text(load.cores()).c_str());
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_drift_run", "Shows what watching for drift brings and costs.",
                  "bench_drift_run [--percent N] [--steps N]"};
  return run_verb(verb, argc, argv, describe_flags(), print_runs);
}
