// clang-format off
// Measures what durability costs a training: every step journaled and a checkpoint every `--every`
// steps, in turns with the same steps without journal and checkpoints. A round is some checkpoints
// long, and ends when the last one is durable. The time that steps waited for journal and
// checkpoints is printed too: it is steady even if times of whole rounds are not.
//   digits   the shipped run: 300 thousand parameters with AdamW, 8 x 8 images, batch of 32
//   tiny     12 blocks of 192 over 65 tokens, 5 million parameters, batch of 64
// Files are on the disk of the temporary folder; times are of the wall clock. A third course,
// without journal and checkpoints like the first, takes its turn too, in each order equally often:
// its ratio to the first shows the noise of the machine alone.
//   verdict  of the median ratio of the kept course to the first: met or missed when its whole 95 %
//            bootstrap interval over the rounds says so
// The losses of all courses must be the same.
// clang-format on

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "analysis/ratio_interval.h"
#include "exec/checkpoint/durable_run.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "exec/models/vit.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;
using Seconds = std::chrono::duration<double>;

constexpr double kBar = 1.035;

struct Options {
  BenchModel model;
  BenchPlan plan;
  int every = 20;
  int checkpoints = 5;  // checkpoints in a round
  int rounds = 12;
  bool in_background = true;
};

po::options_description describe_flags() {
  return describe_bench_flags({{"model", "digits (default) or tiny"},
                               {"devices", "stages of the pipeline, default 1"},
                               {"every", "steps from checkpoint to checkpoint, default 20"},
                               {"checkpoints", "of a round, default 5"},
                               {"rounds", "of each, after one that does not count, default 12"}},
                              {{"foreground", "steps wait for the disk"}});
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
  DurableRun* durable = nullptr;  // null: no journal and no checkpoints
  Step step = 0;
  double loss = 0;
  double all_seconds = 0;
  double kept_seconds = 0;           // seconds that steps waited for journal and checkpoints
  std::vector<double> seconds = {};  // one per round that counts
};

Course begin(const Options& options) {
  Course course{.run = std::make_unique<Run>(make_vit(options.model.config), OptimizerConfig{}, 7,
                                             options.plan.devices)};
  course.run->transition_to(make_bench_plan(course.run->structure(), options.plan));
  return course;
}

double seconds_since(SteadyTime start) {
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

// Records the step that has just been done, and saves a checkpoint if one is due.
void keep_step(Course& course) {
  const SteadyTime start = std::chrono::steady_clock::now();
  const FreezeMask& mask = course.run->plan().mask;
  course.durable->record(course.step, course.loss, mask);
  const Step done = course.step + 1;
  if (course.durable->is_due(done)) {
    course.durable->save(*course.run, {.step = done, .steps = 1 << 30, .mask = mask});
  }
  course.kept_seconds += seconds_since(start);
}

void take_round(Course& course, const Options& options,
                const std::vector<std::vector<Samples>>& batches, bool counts) {
  const SteadyTime start = std::chrono::steady_clock::now();
  for (int i = 0; i < options.every * options.checkpoints; ++i, ++course.step) {
    const auto batch = static_cast<std::size_t>(course.step) % batches.size();
    course.loss = course.run->step(course.step, 1e-4, batches[batch]).loss;
    if (course.durable != nullptr) keep_step(course);
  }
  if (course.durable != nullptr) {
    const SteadyTime finishing = std::chrono::steady_clock::now();
    course.durable->finish();
    course.kept_seconds += seconds_since(finishing);
  }
  const double seconds = seconds_since(start);
  course.all_seconds += seconds;
  if (counts) course.seconds.push_back(seconds);
}

RatioInterval compare(const Course& course, const Course& plain) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < course.seconds.size(); ++i) {
    ratios.push_back(course.seconds[i] / plain.seconds[i]);
  }
  return bootstrap_ratio(ratios, 1);
}

// Writes how much longer the course takes, in percent: "2.10 (0.90 to 3.20)".
std::string to_percent_text(const RatioInterval& ratio) {
  return to_range_text(100 * (ratio.median - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1), 2);
}

void print(const Options& options, const Course& plain, const Course& other, const Course& kept,
           const std::optional<double>& cores) {
  const RatioInterval ratio = compare(kept, plain);
  const double step = find_spread(plain.seconds).median / (options.every * options.checkpoints);
  std::printf("%s, %d devices: a step of %.2f ms; %d rounds of %d checkpoints; %s\n",
              options.model.name.c_str(), options.plan.devices, 1e3 * step, options.rounds,
              options.checkpoints, to_load_text(cores).c_str());
  std::printf(
      "a checkpoint every %d steps takes %s %% more, of which steps waited %.2f %%; bar %s %%: "
      "%s\n",
      options.every, to_percent_text(ratio).c_str(), 100 * kept.kept_seconds / kept.all_seconds,
      fixed(100 * (kBar - 1), 1).c_str(), verdict_at_most(ratio.low, ratio.high, kBar).c_str());
  std::printf("noise alone: the same without any takes %s %% more\n",
              to_percent_text(compare(other, plain)).c_str());
}

ExitCode measure(const Options& options, const std::filesystem::path& folder) {
  const auto batches = make_batches(options.model.config, options.plan, 8, 11);
  std::array<Course, 3> courses{begin(options), begin(options), begin(options)};
  const auto& [plain, other, kept] = courses;
  DurableRun durable(
      {.folder = folder, .every = options.every, .in_background = options.in_background},
      kept.run->model(), {"bench", 1});
  courses.back().durable = &durable;
  const ForeignLoad load;
  std::array<std::size_t, 3> order{0, 1, 2};
  for (int round = 0; round <= options.rounds; ++round) {
    for (const std::size_t course : order) {
      take_round(courses.at(course), options, batches, round > 0);
    }
    // Each order comes once in six rounds.
    std::next_permutation(order.begin(), order.end());
  }
  if (plain.loss != kept.loss || plain.loss != other.loss) {
    throw std::runtime_error("a run that is kept gives another loss");
  }
  print(options, plain, other, kept, load.cores());
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
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_durable_steps", "Measures what a journal and checkpoints cost a training.",
                  "bench_durable_steps [--model NAME] [--every N] [--checkpoints N] [--rounds N]"};
  return run_verb(verb, argc, argv, describe_flags(), run);
}
