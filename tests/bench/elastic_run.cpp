// What elastic training leaves on the table: a vision transformer that freezes by `alpha` 1/3 with
// its frozen prefix cached, against the work that is left to do.
//   work   sum over the steps of the profile's F, I, W and update times that the step's mask and
//          cache leave, divided by the devices
//   fill   the prefix run once per depth, from where the depth before ended, by the devices
//   read   what was found in the cache, at the rate of memcpy in records of that size, measured
//   wall   of the training, evaluation apart
//   share  wall / (work + fill + read), profiled and run anew each time; the median and its 95 %
//          bootstrap interval over the runs; met or missed when the whole interval says so
// Where the rest goes: transitions, what the plans leave idle as simulated, and what steps take
// beyond that.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>

#include "analysis/ratio_interval.h"
#include "analysis/table.h"
#include "exec/foreign_load.h"
#include "exec/numerics.h"
#include "exec/process_memory.h"
#include "exec/profiler.h"
#include "exec/progress.h"
#include "exec/trainer.h"
#include "exec/verb_inputs.h"
#include "planner/activity.h"
#include "planner/command_line.h"
#include "tests/bench/spread.h"

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
  po::options_description flags("flags", 100);
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()  //
      ("run", text(),
       "a run configuration with a cache; default: 8 blocks of 192, 17 tokens, "
       "10 epochs of 8 batches of 64")                               //
      ("devices", text(), "default 2")                               //
      ("runs", text(), "each with a profile of its own, default 5")  //
      ("profile-rounds", text(), "of 8 steps, default 4")            //
      ("seed", text(), "of weights, data and intervals, default 1")  //
      ("quiet", po::bool_switch(), "no progress");
  return flags;
}

RunConfig default_config() {
  RunConfig config;
  config.model = {
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
  options.seed = static_cast<std::uint64_t>(integer_or(flags, "seed", 1, 0, 1'000'000));
  options.config.seed = options.seed;
  options.quiet = is_set(flags, "quiet");
  return options;
}

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// Bytes per second of one core that copies records in random order.
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

// Seconds of all devices together.
struct Work {
  double compute = 0;
  double fill = 0;
  double read = 0;
  double all() const { return compute + fill + read; }
};

// The least work of steps under a plan: of each micro-batch, and of the update.
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

struct Steps {
  Step first = 0;
  Step end = 0;
};

Steps steps_of(const TrainResult& result, std::size_t phase) {
  const bool is_last = phase + 1 == result.phases.size();
  return {result.phases[phase].first_step,
          is_last ? result.trace.steps : result.phases[phase + 1].first_step};
}

Work find_work(const TrainResult& result, const ModelProfile& profile, const RunConfig& config,
               std::int64_t samples) {
  const Step steps_per_epoch = (samples + config.batch_size - 1) / config.batch_size;
  Work work;
  int filled = 0;
  for (std::size_t p = 0; p < result.phases.size(); ++p) {
    const StepWork of_step(profile, result.phases[p].plan);
    const Steps steps = steps_of(result, p);
    for (Step step = steps.first; step < steps.end; ++step) {
      const std::int64_t first = step % steps_per_epoch * config.batch_size;
      work.compute +=
          of_step.of_samples(std::min<std::int64_t>(config.batch_size, samples - first)) +
          of_step.of_update();
    }
    work.fill += of_step.of_fill(std::min(filled, of_step.cached()), samples);
    filled = of_step.cached();
  }
  const CacheReport& cache = *result.cache;
  if (cache.bytes_per_sample.count > 0) {
    const auto found = static_cast<double>(cache.counts.found + cache.counts.found_before);
    work.read = found * static_cast<double>(cache.bytes_per_sample.count) /
                copy_rate(cache.bytes_per_sample.count);
  }
  return work;
}

// One run, in seconds of the wall.
struct Course {
  Work work;  // divided by the devices
  double wall = 0;
  double plan = 0;  // transitions
  double move = 0;
  double start = 0;
  double idle = 0;    // simulated steps less their work
  double beyond = 0;  // the rest of the wall
  double share() const { return wall / work.all(); }
};

Course take_course(const Options& options, const Dataset& data) {
  ProfileOptions profiling;
  profiling.micro_batch_sizes = {options.config.micro_batch_size};
  profiling.devices = options.devices;
  profiling.rounds = options.profile_rounds;
  const MeasuredProfile measured = measure_profile(options.config, data, profiling);
  TrainOptions training;
  training.config = options.config;
  training.profile = measured.profile;
  training.cluster = measured.cluster;
  const TrainResult result = train(training, data);
  Course course;
  course.work = find_work(result, measured.profile, options.config, data.train.count());
  const double devices = options.devices;
  course.work.compute /= devices;
  course.work.fill /= devices;
  course.work.read /= devices;
  course.wall = seconds(result.training_time);
  double simulated = 0;
  for (std::size_t p = 0; p < result.phases.size(); ++p) {
    const Steps steps = steps_of(result, p);
    simulated +=
        seconds(result.phases[p].predicted_step) * static_cast<double>(steps.end - steps.first);
  }
  for (const FreezeEvent& event : result.trace.events) {
    const auto* transition = std::get_if<TransitionEvent>(&event.what);
    if (transition == nullptr) continue;
    course.plan += seconds(transition->plan_time);
    course.move += seconds(transition->move_time);
    course.start += seconds(transition->start_time);
  }
  course.idle = simulated - course.work.compute;
  course.beyond = course.wall - course.plan - course.move - course.start - simulated -
                  course.work.fill - course.work.read;
  return course;
}

std::string verdict_of(const RatioInterval& share) {
  if (share.high <= kBar) return "met";
  return share.low > kBar ? "missed" : "undecided";
}

ExitCode print_runs(const Flags& flags) {
  const Options options = read_options(flags);
  const Dataset data = load_data(options.config);
  const ForeignLoad load;
  Progress progress("runs", options.runs, options.quiet, "runs");
  Table table{{"run", "wall s", "work", "fill", "read", "plan", "move", "start",
               "idle as simulated", "beyond", "share"},
              {}};
  std::vector<double> shares;
  for (int i = 0; i < options.runs; ++i) {
    const Course course = take_course(options, data);
    shares.push_back(course.share());
    table.rows.push_back({std::to_string(i + 1), fixed(course.wall, 3),
                          fixed(course.work.compute, 3), fixed(course.work.fill, 3),
                          fixed(course.work.read, 4), fixed(course.plan, 4), fixed(course.move, 4),
                          fixed(course.start, 4), fixed(course.idle, 3), fixed(course.beyond, 3),
                          fixed(course.share(), 3)});
    progress.update(i + 1, "");
  }
  const RatioInterval share = bootstrap_ratio(shares, options.seed);
  const std::optional<double> others = load.cores();
  std::printf("%s", to_text(table).c_str());
  std::printf("wall / (work + fill + read) is %s; bar %s: %s; other programs kept %s cores busy\n",
              to_range_text(share.median, share.low, share.high, 3).c_str(), fixed(kBar, 2).c_str(),
              verdict_of(share).c_str(),
              others ? fixed(*others, 2).c_str() : "an unknown number of");
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_numerics();
  keep_freed_memory();
  const Verb verb{"bench_elastic_run",
                  "Times elastic training with a cache beside the work that is left to do.",
                  "bench_elastic_run [--run FILE] [--runs N]"};
  return run_verb(verb, argc, argv, describe_flags(), print_runs);
}
