// clang-format off
// Compares the time of elastic training with the work that freezing leaves to do: a vision
// transformer freezes by `alpha` 1/3 with its frozen prefix cached.
//   work   sum over the steps of the profile's F, I, W and update times that the step's mask and
//          cache leave, divided by the number of devices
//   fill   time to run the prefix once per depth, from where the depth before ended, divided by
//          the number of devices
//   read   time to read what was found in the cache, at the measured rate of memcpy in records of
//          that size
//   wall   wall time of the training, without evaluation
//   share  wall / (work + fill + read) of each run; the median and its 95 % bootstrap interval over
//          the runs; met or missed when the whole interval says so
// A machine's speed drifts, so the model is profiled before and after each training, with half of
// the rounds each, and work and fill use the mean of both profiles. Plans and simulated steps use
// the first profile alone. The rest of the wall time is split into transitions, the idle time of
// the plans as simulated, and the time of steps beyond the simulated one.
// clang-format on

#include <algorithm>
#include <cstdio>
#include <optional>

#include "analysis/ratio_interval.h"
#include "analysis/tables/table.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "exec/profile/profiler.h"
#include "exec/train/progress.h"
#include "exec/train/trainer.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/verbs/command_line.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"
#include "tests/bench/transitions/least_work.h"
#include "tests/bench/transitions/mean_profile.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr double kBar = 1.15;

struct Options {
  RunConfig config;
  int devices = 2;
  int runs = 5;
  int profile_rounds = 4;
  std::uint64_t seed = 1;
  bool quiet = false;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"run",
        "a run configuration with a cache; default: 8 blocks of 192, 17 tokens, "
        "10 epochs of 8 batches of 64"},
       {"devices", "default 2"},
       {"runs", "each with profiles of its own, default 5"},
       {"profile-rounds", "of 8 steps, half before and half after a run, default 4"},
       {"seed", "of weights, data and intervals, default 1"}},
      {{"quiet", "no progress"}});
}

RunConfig default_config() {
  RunConfig config;
  config.model = VitConfig{
      .image = 16, .channels = 3, .patch = 4, .dim = 192, .blocks = 8, .heads = 3, .classes = 10};
  config.data.kind = DataConfig::Kind::kSynthetic;
  config.data.train_samples = 512;
  config.data.test_samples = 32;
  config.epochs = 10;
  config.batch_size = 64;
  config.micro_batch_size = 8;
  config.freeze.policy =
      AlphaFreeze{.alpha = 1.0 / 3, .start = 1, .interval = 1, .unit = PaceUnit::kEpochs};
  config.cache.kind = CacheConfig::Kind::kOn;
  return config;
}

Options read_options(const Flags& flags) {
  Options options;
  options.config = optional_text(flags, "run") ? read_config(flags) : default_config();
  if (!options.config.cache.is_on()) refuse_flags("a run without a cache", "one with a cache");
  options.devices = integer_or(flags, "devices", options.devices, 1, 64);
  options.runs = integer_or(flags, "runs", options.runs, 1, 1000);
  options.profile_rounds = integer_or(flags, "profile-rounds", options.profile_rounds, 1, 1000);
  options.seed = read_seed(flags);
  options.config.seed = options.seed;
  options.quiet = is_set(flags, "quiet");
  return options;
}

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// The times of one run, in seconds of the wall.
struct Course {
  LeastWork work;  // divided by the devices
  double wall = 0;
  double plan = 0;  // transitions
  double move = 0;
  double start = 0;
  double idle = 0;    // simulated steps less their work
  double beyond = 0;  // the rest of the wall
  double share() const { return wall / work.all(); }
};

double sum_simulated(const TrainResult& result) {
  double simulated = 0;
  for (std::size_t p = 0; p < result.phases.size(); ++p) {
    const StepRange steps = steps_of(result, p);
    simulated +=
        seconds(result.phases[p].predicted_step) * static_cast<double>(steps.end - steps.first);
  }
  return simulated;
}

void add_transitions(const TrainResult& result, Course& course) {
  for (const FreezeEvent& event : result.trace.events) {
    const auto* transition = std::get_if<TransitionEvent>(&event.what);
    if (transition == nullptr) continue;
    course.plan += seconds(transition->plan_time);
    course.move += seconds(transition->move_time);
    course.start += seconds(transition->start_time);
  }
}

MeasuredProfile measure_half(const Options& options, const Dataset& data) {
  ProfileOptions profiling;
  profiling.micro_batch_sizes = {options.config.micro_batch_size};
  profiling.devices = options.devices;
  profiling.rounds = std::max(1, options.profile_rounds / 2);
  return measure_profile(options.config, data, profiling);
}

Course take_course(const Options& options, const Dataset& data) {
  const MeasuredProfile before = measure_half(options, data);
  TrainOptions training;
  training.config = options.config;
  training.profile = before.profile;
  training.cluster = before.cluster;
  const TrainResult result = train(training, data);
  const ModelProfile mean = mean_times(before.profile, measure_half(options, data).profile);
  const auto work_by = [&](const ModelProfile& profile) {
    return find_work(result, profile, options.config, data.train.count());
  };
  Course course;
  LeastWork work = work_by(mean);
  work.read = find_reading(*result.cache);
  course.work = work.over(options.devices);
  course.wall = seconds(result.training_time);
  add_transitions(result, course);
  // Simulated steps and their work here both use the profile before the training.
  course.idle = sum_simulated(result) - work_by(before.profile).over(options.devices).compute;
  course.beyond =
      course.wall - course.plan - course.move - course.start - course.idle - course.work.all();
  return course;
}

double median_share(const std::vector<Course>& courses, double Course::*part) {
  std::vector<double> shares;
  for (const Course& course : courses) shares.push_back(course.*part / course.work.all());
  return find_spread(std::move(shares)).median;
}

void print_verdict(const std::vector<Course>& courses, std::uint64_t seed,
                   const std::optional<double>& others) {
  std::vector<double> shares;
  for (const Course& course : courses) shares.push_back(course.share());
  const RatioInterval share = bootstrap_ratio(shares, seed);
  std::printf("wall / (work + fill + read) is %s; bar %s: %s; %s\n",
              to_range_text(share.median, share.low, share.high, 3).c_str(), fixed(kBar, 2).c_str(),
              verdict_at_most(share.low, share.high, kBar).c_str(), to_load_text(others).c_str());
  std::printf("of work + fill + read, medians: idle as simulated %s %%, beyond %s %%\n",
              fixed(100 * median_share(courses, &Course::idle), 1).c_str(),
              fixed(100 * median_share(courses, &Course::beyond), 1).c_str());
}

ExitCode print_runs(const Flags& flags) {
  const Options options = read_options(flags);
  const Dataset data = load_data(options.config);
  const ForeignLoad load;
  Progress progress("runs", options.runs, options.quiet, "runs");
  Table table{{"run", "wall s", "work", "fill", "read", "plan", "move", "start",
               "idle as simulated", "beyond", "share"},
              {}};
  std::vector<Course> courses;
  for (int i = 0; i < options.runs; ++i) {
    courses.push_back(take_course(options, data));
    const Course& course = courses.back();
    table.rows.push_back({std::to_string(i + 1), fixed(course.wall, 3),
                          fixed(course.work.compute, 3), fixed(course.work.fill, 3),
                          fixed(course.work.read, 4), fixed(course.plan, 4), fixed(course.move, 4),
                          fixed(course.start, 4), fixed(course.idle, 3), fixed(course.beyond, 3),
                          fixed(course.share(), 3)});
    progress.update(i + 1, "");
  }
  const std::optional<double> others = load.cores();
  std::printf("%s", to_text(table).c_str());
  print_verdict(courses, options.seed, others);
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_elastic_run",
                  "Times elastic training with a cache beside the work that is left to do.",
                  "bench_elastic_run [--run FILE] [--runs N]"};
  return run_verb(verb, argc, argv, describe_flags(), print_runs);
}
