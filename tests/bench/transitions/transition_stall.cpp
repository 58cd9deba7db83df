// clang-format off
// Measures how long training stands still at a transition: a vision transformer with AdamW state
// (default the 86 million parameters of ViT-B/16) goes from two stages to two replicas and back, in
// process.
//   stall      duration of the call that puts the next plan in force; steps are not counted
//   bandwidth  memcpy by both cores at once between touched buffers, measured between transitions
//   bound      50 ms + 1.25 x bytes that come to new owners / bandwidth
//   share      stall / bound, the median and its 95 % bootstrap interval; met or missed when the
//              whole interval says so
// It also prints resident memory and open files along the way, which should not grow.
// clang-format on

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>

#include "analysis/ratio_interval.h"
#include "analysis/tables/table.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "exec/models/vit.h"
#include "exec/run/run.h"
#include "exec/train/progress.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/resident_memory.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kDevices = 2;
constexpr double kFixed = 0.05;  // seconds
constexpr double kFactor = 1.25;
constexpr std::size_t kCopied = std::size_t{1} << 27;  // bytes of a memcpy, by each core

struct Options {
  BenchModel model;
  int transitions = 200;
  int step_every = 10;
  std::uint64_t seed = 1;
  bool quiet = false;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "tiny, wide or base (default: 86 million parameters)"},
       {"transitions", "there and back alternately, even, default 200"},
       {"step-every", "transitions between training steps, even, default 10"},
       {"seed", "of weights, data and intervals, default 1"}},
      {{"quiet", "no progress"}});
}

int even_or(const Flags& flags, const std::string& name, int fallback) {
  const int value = integer_or(flags, name, fallback, 2, 100'000);
  if (value % 2 != 0) refuse_flags("--" + name + " " + std::to_string(value), "an even number");
  return value;
}

Options read_options(const Flags& flags) {
  Options options;
  options.model = find_bench_model(optional_text(flags, "model").value_or("base"));
  options.transitions = even_or(flags, "transitions", options.transitions);
  options.step_every = even_or(flags, "step-every", options.step_every);
  options.seed = read_seed(flags);
  options.quiet = is_set(flags, "quiet");
  return options;
}

double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Copies between buffers of each core that have been touched before.
class Copying {
 public:
  Copying() : workers_(kDevices), from_(kDevices), to_(kDevices) {
    workers_.run([this](DeviceId device) {
      from_[device.index()].assign(kCopied, 1);
      to_[device.index()].assign(kCopied, 2);
    });
  }
  // Returns bytes per second, both cores together.
  double measure() {
    const SteadyTime start = std::chrono::steady_clock::now();
    workers_.run([this](DeviceId device) {
      std::memcpy(to_[device.index()].data(), from_[device.index()].data(), kCopied);
    });
    return static_cast<double>(kDevices * kCopied) / seconds_since(start);
  }

 private:
  Workers workers_;
  std::vector<std::vector<char>> from_;
  std::vector<std::vector<char>> to_;
};

std::ptrdiff_t count_open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

struct Footprint {
  int transitions = 0;
  std::int64_t resident = 0;
  std::ptrdiff_t files = 0;
};

// The transitions in one direction.
struct Direction {
  std::string name;
  MoveReport move;
  std::vector<double> seconds;
  std::vector<TransitionReport> parts;
};

struct Answer {
  Direction to_replicas{"2 stages -> 2 replicas", {}, {}, {}};
  Direction to_stages{"2 replicas -> 2 stages", {}, {}, {}};
  std::vector<double> bandwidths;
  std::vector<Footprint> footprints;
  std::optional<double> others;
};

void take_transition(Run& run, const Plan& plan, Direction& direction) {
  const SteadyTime start = std::chrono::steady_clock::now();
  const TransitionReport report = run.transition_to(plan);
  direction.seconds.push_back(seconds_since(start));
  direction.parts.push_back(report);
  direction.move = report.move;
}

Answer measure(const Options& options) {
  const OptimizerConfig optimizer;  // AdamW
  Run run(make_vit(options.model.config), optimizer, options.seed, kDevices);
  BenchPlan shape{
      .devices = kDevices, .batch_size = options.model.batch_size, .micro_batches = kDevices};
  const Plan stages = make_bench_plan(run.structure(), shape);
  shape.devices = 1;
  shape.replicas = kDevices;
  const Plan replicas = make_bench_plan(run.structure(), shape);
  const auto batches = make_batches(options.model.config, shape, 1, options.seed);
  Step step = 0;
  const auto train = [&] { run.step(step++, optimizer.learning_rate, batches[0]); };
  run.transition_to(stages);
  train();  // the first step creates the optimizer's moments
  Answer answer;
  Copying copying;
  Direction warm_up;
  take_transition(run, replicas, warm_up);
  train();
  take_transition(run, stages, warm_up);
  train();
  const auto note = [&](int transitions) {
    answer.footprints.push_back({transitions, resident_now(), count_open_files()});
  };
  note(0);
  Progress progress("transitions", options.transitions, options.quiet, "transitions");
  const ForeignLoad load;
  for (int i = 0; i < options.transitions; i += 2) {
    answer.bandwidths.push_back(copying.measure());
    take_transition(run, replicas, answer.to_replicas);
    if (i % options.step_every == 0) train();
    take_transition(run, stages, answer.to_stages);
    if (i % options.step_every == 0) train();
    if (i + 2 == 20 || i + 2 == options.transitions) note(i + 2);
    progress.update(i + 2, "");
  }
  answer.others = load.cores();
  return answer;
}

double median_ms(const Direction& direction, Duration TransitionReport::*part) {
  std::vector<double> times;
  for (const TransitionReport& report : direction.parts) {
    times.push_back(std::chrono::duration<double, std::milli>(report.*part).count());
  }
  return find_spread(times).median;
}

// Returns stall / bound, each transition against the bandwidth measured just before.
RatioInterval find_share(const Direction& direction, const Answer& answer, std::uint64_t seed) {
  std::vector<double> shares;
  for (std::size_t i = 0; i < direction.seconds.size(); ++i) {
    const double copying = static_cast<double>(direction.move.moved.count) / answer.bandwidths[i];
    shares.push_back(direction.seconds[i] / (kFixed + kFactor * copying));
  }
  return bootstrap_ratio(shares, seed);
}

void print(const Answer& answer, const Options& options) {
  Table table{
      {"transition", "moved MB", "copied MB", "stall ms (least to most)",
       "share of the bound (95 % interval)", "bound", "program ms", "move ms", "executors ms"},
      {}};
  for (const Direction* direction : {&answer.to_replicas, &answer.to_stages}) {
    const Spread stall = find_spread(direction->seconds);
    const RatioInterval share = find_share(*direction, answer, options.seed);
    table.rows.push_back({direction->name,
                          fixed(static_cast<double>(direction->move.moved.count) * 1e-6, 1),
                          fixed(static_cast<double>(direction->move.copied.count) * 1e-6, 1),
                          to_range_text(stall.median * 1e3, stall.least * 1e3, stall.most * 1e3, 1),
                          to_range_text(share.median, share.low, share.high, 3),
                          verdict_at_most(share.low, share.high, 1),
                          fixed(median_ms(*direction, &TransitionReport::program_time), 2),
                          fixed(median_ms(*direction, &TransitionReport::move_time), 1),
                          fixed(median_ms(*direction, &TransitionReport::executor_time), 2)});
  }
  std::printf("%s", to_text(table).c_str());
  Table footprints{{"transitions", "resident MiB", "open files"}, {}};
  for (const Footprint& each : answer.footprints) {
    footprints.rows.push_back({std::to_string(each.transitions),
                               fixed(static_cast<double>(each.resident) / (1 << 20), 1),
                               std::to_string(each.files)});
  }
  std::printf("%s", to_text(footprints).c_str());
  const Spread bandwidth = find_spread(answer.bandwidths);
  std::printf(
      "memcpy by two cores at once: %s GB/s; %s\n",
      to_range_text(bandwidth.median * 1e-9, bandwidth.least * 1e-9, bandwidth.most * 1e-9, 2)
          .c_str(),
      to_load_text(answer.others).c_str());
}

ExitCode print_stalls(const Flags& flags) {
  const Options options = read_options(flags);
  print(measure(options), options);
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_transition_stall",
                  "Times transitions between two stages and two replicas beside their bound.",
                  "bench_transition_stall [--model tiny|wide|base] [--transitions N]"};
  return run_verb(verb, argc, argv, describe_flags(), print_stalls);
}
