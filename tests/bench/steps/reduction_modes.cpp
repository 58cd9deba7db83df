// clang-format off
// Compares the reduction modes `exact` and `fast` in time and memory, predicted and measured, on
// two replicas of one stage. The model is profiled, both modes are simulated from that profile,
// then they run in rounds, in an order drawn anew each time.
//   step / fast's  ratio of the mean steps of one round; the median over the rounds and its 95 %
//                  bootstrap interval
//   gradients      simulated peak of the gradients on a device, reductions included
//   resident       peak of this process (both devices, libraries and all) in a round
// A mode that the executor refuses is predicted nevertheless, and the refusal is printed.
// clang-format on

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/ratio_interval.h"
#include "analysis/tables/table.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/train/progress.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/resident_memory.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"
#include "tests/bench/transitions/plan_trials.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kDevices = 2;
constexpr double kMebibyte = 1 << 20;

struct Options {
  BenchModel model;
  int micro_batches = 8;
  int rounds = 12;
  Stretch stretch;
  int profile_rounds = 4;
  std::uint64_t seed = 1;
  bool json = false;
  bool quiet = false;
};

struct Mode {
  std::string name;
  Plan plan;
  double predicted = 0;          // seconds of a step
  Bytes gradients;               // peak on one device
  Bytes peak;                    // peak of all memory on one device
  std::vector<double> seconds;   // mean step of each round
  std::vector<double> resident;  // peak bytes of each round
  std::string refusal;
};

struct Answer {
  std::array<Mode, 2> modes;  // exact, fast
  bool forgets_peaks = true;
  std::optional<double> others;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "tiny (default) or wide"},
       {"micro-batches", "of a step, an even divisor of the batch (64, of wide 32), default 8"},
       {"rounds", "of both modes, default 12"},
       {"steps", "timed of each mode and round, default 6"},
       {"warmup", "steps before them that do not count, default 2"},
       {"profile-rounds", "of 8 steps, and of 4 with all layers frozen; default 4"},
       {"seed", "of weights, data, orders and intervals, default 1"}},
      {{"quiet", "no progress"}, {"json", "one JSON line for each mode"}});
}

Options read_options(const Flags& flags) {
  Options options;
  options.model = find_bench_model(optional_text(flags, "model").value_or("tiny"));
  const int batch = options.model.batch_size;
  options.micro_batches = integer_or(flags, "micro-batches", options.micro_batches, 1, batch);
  if (batch % options.micro_batches != 0 || options.micro_batches % kDevices != 0) {
    refuse_flags("--micro-batches " + std::to_string(options.micro_batches),
                 "an even divisor of " + std::to_string(batch));
  }
  options.rounds = integer_or(flags, "rounds", options.rounds, 1, 10'000);
  options.stretch.steps = integer_or(flags, "steps", options.stretch.steps, 1, 10'000);
  options.stretch.warm_up = integer_or(flags, "warmup", options.stretch.warm_up, 0, 10'000);
  options.profile_rounds = integer_or(flags, "profile-rounds", options.profile_rounds, 1, 10'000);
  options.seed = read_seed(flags);
  options.json = is_set(flags, "json");
  options.quiet = is_set(flags, "quiet");
  return options;
}

Mode predict_mode(const std::string& name, ReductionMode reduction, const MeasuredProfile& measured,
                  const Options& options) {
  Mode mode;
  mode.name = name;
  mode.plan = make_bench_plan(measured.profile, {.replicas = kDevices,
                                                 .batch_size = options.model.batch_size,
                                                 .micro_batches = options.micro_batches,
                                                 .reduction = reduction});
  const SimulatedStep step = simulate_step(mode.plan, {measured.profile, measured.cluster});
  mode.predicted = std::chrono::duration<double>(step.simulation.makespan).count();
  for (const MemoryTrace& trace :
       simulate_memory(step.lowered.graph, {measured.profile, measured.cluster})) {
    mode.gradients =
        std::max(mode.gradients, trace.most[static_cast<std::size_t>(MemoryKind::kGradients)]);
  }
  for (const MemoryPeak& peak : step.simulation.memory) mode.peak = std::max(mode.peak, peak.total);
  return mode;
}

void try_mode(PlanTrials& trials, const Stretch& stretch, Answer& answer, Mode& mode) {
  if (!mode.refusal.empty()) return;
  answer.forgets_peaks = forget_peak() && answer.forgets_peaks;
  try {
    mode.seconds.push_back(trials.time_steps(mode.plan, stretch));
    mode.resident.push_back(static_cast<double>(resident_peak()));
  } catch (const InfeasibleError& error) {
    mode.refusal = error.what();
  }
}

Answer measure(const Options& options) {
  PlanTrials trials(options.model, options.micro_batches, options.seed, kDevices);
  Progress profiling("profile", options.profile_rounds + 1, options.quiet, "rounds");
  const MeasuredProfile measured =
      trials.measure(options.profile_rounds, [&](int done, int) { profiling.update(done, ""); });
  Answer answer;
  answer.modes = {predict_mode("exact", ReductionMode::kExact, measured, options),
                  predict_mode("fast", ReductionMode::kFast, measured, options)};
  Progress running("modes", options.rounds, options.quiet, "rounds");
  const ForeignLoad load;
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::size_t i : draw_order(answer.modes.size(), options.seed, round)) {
      try_mode(trials, options.stretch, answer, answer.modes[i]);
    }
    running.update(round + 1, "");
  }
  answer.others = load.cores();
  return answer;
}

// Returns the ratio of `mode` to the fast mode, round by round; none if either mode did not run.
std::optional<RatioInterval> compare_steps(const Mode& mode, const Answer& answer,
                                           std::uint64_t seed) {
  const Mode& fast = answer.modes.back();
  if (mode.seconds.empty() || fast.seconds.empty()) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t round = 0; round < fast.seconds.size(); ++round) {
    ratios.push_back(mode.seconds[round] / fast.seconds[round]);
  }
  return bootstrap_ratio(ratios, seed);
}

std::string print_spread(const std::vector<double>& values, double unit) {
  if (values.empty()) return "";
  const Spread spread = find_spread(values);
  return to_range_text(spread.median / unit, spread.least / unit, spread.most / unit, 1);
}

std::string print_answer(const Answer& answer, const Options& options) {
  Table table{{"mode", "predicted ms", "measured ms (least to most)", "predicted / fast's",
               "measured / fast's (95 % interval)", "gradients MiB", "peak MiB",
               "resident MiB (least to most)"},
              {}};
  for (const Mode& mode : answer.modes) {
    const auto ratio = compare_steps(mode, answer, options.seed);
    table.rows.push_back({mode.name, fixed(mode.predicted * 1e3, 1),
                          print_spread(mode.seconds, 1e-3),
                          fixed(mode.predicted / answer.modes.back().predicted, 3),
                          ratio ? to_range_text(ratio->median, ratio->low, ratio->high, 3) : "",
                          fixed(static_cast<double>(mode.gradients.count) / kMebibyte, 1),
                          fixed(static_cast<double>(mode.peak.count) / kMebibyte, 1),
                          print_spread(mode.resident, kMebibyte)});
  }
  std::string text = to_text(table);
  for (const Mode& mode : answer.modes) {
    if (!mode.refusal.empty()) text += mode.name + ": the executor refuses: " + mode.refusal + "\n";
  }
  if (!answer.forgets_peaks)
    text += "resident: the most since the start, for peaks do not reset here\n";
  return text + options.model.name + ", " + std::to_string(options.rounds) + " rounds of " +
         std::to_string(options.stretch.steps) + " steps of each mode; gradients and peak are of " +
         "one device, predicted; " + to_load_text(answer.others) + "\n";
}

nlohmann::ordered_json to_json(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  const Spread spread = find_spread(values);
  return {{"median", spread.median}, {"least", spread.least}, {"most", spread.most}};
}

nlohmann::ordered_json to_json(const Mode& mode, const Answer& answer, const Options& options) {
  nlohmann::ordered_json line{{"model", options.model.name},
                              {"mode", mode.name},
                              {"plan", summarize(mode.plan)},
                              {"rounds", mode.seconds.size()},
                              {"predicted_s", mode.predicted},
                              {"measured_s", to_json(mode.seconds)},
                              {"gradient_bytes", mode.gradients.count},
                              {"peak_bytes", mode.peak.count},
                              {"resident_bytes", to_json(mode.resident)},
                              {"resident_resets", answer.forgets_peaks}};
  line["over_fast"] = nullptr;
  if (const auto ratio = compare_steps(mode, answer, options.seed)) {
    line["over_fast"] = {{"median", ratio->median}, {"low", ratio->low}, {"high", ratio->high}};
  }
  line["refusal"] = nullptr;
  if (!mode.refusal.empty()) line["refusal"] = mode.refusal;
  line["others"] = answer.others ? nlohmann::ordered_json(*answer.others) : nullptr;
  return line;
}

ExitCode print_modes(const Flags& flags) {
  const Options options = read_options(flags);
  const Answer answer = measure(options);
  if (!options.json) {
    std::printf("%s", print_answer(answer, options).c_str());
    return ExitCode::kOk;
  }
  for (const Mode& mode : answer.modes) {
    std::printf("%s\n", to_json(mode, answer, options).dump().c_str());
  }
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  const Verb verb{"bench_reduction_modes",
                  "Compares the reduction modes exact and fast in time and memory.",
                  "bench_reduction_modes [--model tiny|wide] [--rounds N] [--json]"};
  return run_verb(verb, argc, argv, describe_flags(), print_modes);
}
