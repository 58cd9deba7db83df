// What it costs a training to keep itself: every step journaled and a checkpoint every so many
// steps, against the same steps without either, in turns. A round is some checkpoints long, and
// ends when the last one is durable. What steps waited for it is told too: it is steady where times
// of whole rounds are not.
//   digits   the shipped run: 300 thousand parameters with AdamW, 8 x 8 images, batch of 32
//   tiny     12 blocks of 192 over 65 tokens, 5 million parameters, batch of 64
// On the disk of the temporary folder; times of the wall clock. Losses of both must be the same.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "analysis/ratio_interval.h"
#include "exec/checkpoint/durable_run.h"
#include "exec/foreign_load.h"
#include "exec/numerics.h"
#include "exec/vit.h"
#include "planner/command_line.h"
#include "planner/flags.h"
#include "tests/bench/bench_run.h"
#include "tests/bench/spread.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;
using Seconds = std::chrono::duration<double>;

struct Options {
  BenchModel model;
  BenchPlan plan;
  int every = 20;
  int checkpoints = 5;  // of a round
  int rounds = 8;
  bool in_background = true;
};

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()                                                       //
      ("model", text(), "digits (default) or tiny")                         //
      ("devices", text(), "stages of the pipeline, default 1")              //
      ("every", text(), "steps from checkpoint to checkpoint, default 20")  //
      ("checkpoints", text(), "of a round, default 5")                      //
      ("foreground", po::bool_switch(), "steps wait for the disk")          //
      ("rounds", text(), "of each, after one that does not count, default 8");
  return flags;
}

Options read_options(const Flags& flags) {
  Options options;
  const std::string name = optional_text(flags, "model").value_or("digits");
  options.model = name == "digits" ? BenchModel{.name = name, .config = {}, .batch_size = 32}
                                   : find_bench_model(name);
  options.plan = {.devices = integer_or(flags, "devices", 1, 1, 16),
                  .batch_size = options.model.batch_size,
                  .micro_batches = 4};
  options.every = integer_or(flags, "every", options.every, 1, 10'000);
  options.checkpoints = integer_or(flags, "checkpoints", options.checkpoints, 1, 10'000);
  options.rounds = integer_or(flags, "rounds", options.rounds, 1, 10'000);
  options.in_background = !flags["foreground"].as<bool>();
  return options;
}

struct Course {
  std::unique_ptr<Run> run;
  Step step = 0;
  double loss = 0;
  double kept_seconds = 0;  // in which steps waited for what keeps them
};

Course begin(const Options& options) {
  Course course{.run = std::make_unique<Run>(make_vit(options.model.config), OptimizerConfig{}, 7,
                                             options.plan.devices)};
  course.run->switch_to(make_bench_plan(course.run->structure(), options.plan));
  return course;
}

// A round, and how long it took.
double take_round(Course& course, const Options& options,
                  const std::vector<std::vector<Samples>>& batches, DurableRun* durable) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < options.every * options.checkpoints; ++i, ++course.step) {
    const auto batch = static_cast<std::size_t>(course.step) % batches.size();
    course.loss = course.run->step(course.step, 1e-4, batches[batch]).loss;
    if (durable == nullptr) continue;
    const auto done_at = std::chrono::steady_clock::now();
    durable->record(course.step, course.loss, course.run->plan().mask);
    const Step done = course.step + 1;
    if (durable->is_due(done)) {
      durable->save(*course.run, {.step = done, .steps = 1 << 30, .mask = course.run->plan().mask});
    }
    course.kept_seconds += Seconds(std::chrono::steady_clock::now() - done_at).count();
  }
  if (durable != nullptr) {
    const auto done_at = std::chrono::steady_clock::now();
    durable->finish();
    course.kept_seconds += Seconds(std::chrono::steady_clock::now() - done_at).count();
  }
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

ExitCode measure(const Options& options, const std::filesystem::path& folder) {
  const auto batches = make_batches(options.model.config, options.plan, 8, 11);
  Course plain = begin(options);
  Course kept = begin(options);
  DurableRun durable(
      {.folder = folder, .every = options.every, .in_background = options.in_background},
      kept.run->model(), {"bench", 1});
  const ForeignLoad load;
  std::vector<double> ratios;
  std::vector<double> seconds;
  double all_seconds = 0;  // of the run that is kept
  for (int round = 0; round <= options.rounds; ++round) {
    // Whoever begins a round is the other one in the next.
    double without = 0;
    if (round % 2 == 0) without = take_round(plain, options, batches, nullptr);
    const double with = take_round(kept, options, batches, &durable);
    if (round % 2 != 0) without = take_round(plain, options, batches, nullptr);
    all_seconds += with;
    if (round == 0) continue;
    ratios.push_back(with / without);
    seconds.push_back(without / (options.every * options.checkpoints));
  }
  if (plain.loss != kept.loss) throw std::runtime_error("a run that is kept gives another loss");
  const RatioInterval ratio = bootstrap_ratio(ratios, 1);
  const Spread step = find_spread(seconds);
  const std::optional<double> others = load.cores();
  std::printf(
      "%s, %d devices: a step of %.2f ms; a checkpoint every %d steps takes %.2f %% (95 %%: %.2f "
      "to "
      "%.2f, %d rounds of %d checkpoints), of which steps waited %.2f %%; other programs kept %s "
      "cores busy\n",
      options.model.name.c_str(), options.plan.devices, 1e3 * step.median, options.every,
      100 * (ratio.median - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1), options.rounds,
      options.checkpoints, 100 * kept.kept_seconds / all_seconds,
      others ? std::to_string(*others).c_str() : "an unknown number of");
  return ExitCode::kOk;
}

ExitCode run(const Flags& flags) {
  const Options options = read_options(flags);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("frazil-bench-" + std::to_string(::getpid()));
  const ExitCode code = measure(options, folder);
  std::filesystem::remove_all(folder);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_numerics();
  const Verb verb{"bench_durable_steps", "Measures what a journal and checkpoints cost a training.",
                  "bench_durable_steps [--model NAME] [--every N] [--checkpoints N] [--rounds N]"};
  return run_verb(verb, argc, argv, describe_flags(), run);
}
