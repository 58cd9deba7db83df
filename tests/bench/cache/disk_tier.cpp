// clang-format off
// Tests whether a training whose cached features exceed the memory they may take is no slower than
// a training that computes the features again. A vision transformer runs on one device with some
// blocks frozen, in four courses that treat the features of the frozen prefix differently:
//   computed   computed in each epoch; there is no cache
//   in memory  all cached in memory
//   quarter    a quarter cached in memory, the rest on disk
//   on disk    all cached on disk
// After an epoch that fills the caches, a round is one epoch of each course, over the same batches,
// in rotating order. While a step runs, the features of the next step are read, as in a run; those
// of an epoch's first step are asked for after the epoch's clock has started. Before an epoch the
// pages of the cache's file are dropped from the system's memory, so that reads come from the disk.
//   time     of an epoch, relative to the computed one of the same round; the median and its 95 %
//            bootstrap interval over the rounds
//   verdict  for courses with features on disk: met when the whole interval is at most 1, missed
//            when it is above, else undecided
// All courses must have the losses of the computed one, bit for bit.
// clang-format on

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "analysis/ratio_interval.h"
#include "analysis/tables/table.h"
#include "exec/cache/prefix_cache.h"
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
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"
#include "tests/bench/support/watched_files.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;
using SampleIds = std::vector<std::int64_t>;

constexpr double kBar = 1.0;
constexpr int kMicroBatch = 8;
constexpr int kUncounted = 1;  // epochs: the one that fills

struct Options {
  BenchModel model;
  int frozen = 6;
  int samples = 512;
  int rounds = 6;
  std::string folder;
  std::uint64_t seed = 1;
  bool quiet = false;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "tiny (default), wide or base"},
       {"frozen", "blocks, beside the embedding, default 6"},
       {"samples", "of an epoch, default 512"},
       {"rounds", "epochs of each that count, default 6"},
       {"folder", "for features on disk, default the system's for temporary files"},
       {"seed", "of weights, data, orders and intervals, default 1"}},
      {{"quiet", "no progress"}});
}

Options read_options(const Flags& flags) {
  Options options;
  options.model = find_bench_model(optional_text(flags, "model").value_or("tiny"));
  options.frozen = integer_or(flags, "frozen", options.frozen, 1, options.model.config.blocks);
  options.samples = integer_or(flags, "samples", options.samples, 8, 1'000'000);
  options.rounds = integer_or(flags, "rounds", options.rounds, 2, 1000);
  options.folder =
      optional_text(flags, "folder").value_or(std::filesystem::temp_directory_path().string());
  options.seed = read_seed(flags);
  options.quiet = is_set(flags, "quiet");
  return options;
}

// The number of samples whose features have room in memory and on disk.
struct Room {
  std::string name;
  std::int64_t in_memory = 0;
  std::int64_t on_disk = 0;
  bool is_none() const { return in_memory + on_disk == 0; }
};

std::array<Room, 4> list_rooms(std::int64_t samples) {
  const std::int64_t quarter = samples / 4;
  return {Room{"computed", 0, 0}, Room{"in memory", samples, 0},
          Room{"quarter", quarter, samples - quarter}, Room{"on disk", 0, samples}};
}

struct Course {
  Room room;
  std::unique_ptr<WatchedFiles> files;
  std::unique_ptr<PrefixCache> cache;
  std::unique_ptr<Run> run;  // destroyed before the cache
  Step step = 0;
  std::vector<double> losses = {};     // losses of the last epoch
  std::vector<double> seconds = {};    // one per epoch that counts
  std::vector<double> from_disk = {};  // bytes read in those epochs, if the system tells
};

Plan plan_for(Run& run, const Options& options, bool caches) {
  const int batch = options.model.batch_size;
  Plan plan =
      make_bench_plan(run.structure(), {.batch_size = batch, .micro_batches = batch / kMicroBatch});
  plan.mask = FreezeMask::frozen_prefix(plan.mask.blocks(), BlockId{options.frozen});
  plan.cache_frozen_prefix = caches;
  return plan;
}

std::unique_ptr<PrefixCache> make_cache(const Room& room, Run& run, const Options& options,
                                        const Dataset& data, const WatchedFiles& files) {
  const auto outputs = run.outputs(data.train.narrow(0, 1));
  // All features between blocks have one size.
  const auto slot = (static_cast<std::int64_t>(outputs[0][0].nbytes()) + 63) / 64 * 64;
  const StoreLimits limits{Bytes{room.in_memory * slot}, Bytes{room.on_disk * slot},
                           options.folder};
  auto cache = std::make_unique<PrefixCache>(run.model(), outputs, data.train.count(),
                                             files.files(), PrefixCacheOptions{.limits = limits});
  if (cache->room(FeatureTier::kMemory) != room.in_memory ||
      cache->room(FeatureTier::kDisk) != room.on_disk) {
    throw std::runtime_error("there is no room for features " + room.name);
  }
  return cache;
}

Course begin(const Room& room, const Options& options, const Dataset& data) {
  Course course{.room = room,
                .files = std::make_unique<WatchedFiles>(),
                .cache = nullptr,
                .run = std::make_unique<Run>(make_vit(options.model.config), OptimizerConfig{},
                                             options.seed, 1)};
  if (!room.is_none()) {
    course.cache = make_cache(room, *course.run, options, data, *course.files);
    course.run->attach(*course.cache);
  }
  course.run->transition_to(plan_for(*course.run, options, !room.is_none()));
  return course;
}

// The micro-batches of a step and their samples.
struct Batch {
  std::vector<Samples> micro_batches;
  SampleIds samples;
};

std::vector<Batch> make_epoch(const Options& options, const Dataset& data, int epoch) {
  const SampleIds order = epoch_order(data.train.count(), options.seed, epoch);
  std::vector<Batch> batches;
  for (std::int64_t first = 0; first < options.samples; first += options.model.batch_size) {
    const auto count = std::min<std::int64_t>(options.model.batch_size, options.samples - first);
    batches.push_back({gather_micro_batches(data.train, order, first, count, kMicroBatch),
                       {order.begin() + first, order.begin() + first + count}});
  }
  return batches;
}

void expect(Course& course, const std::vector<Batch>& batches, std::size_t next) {
  if (!course.cache || next == batches.size()) return;
  std::vector<SampleIds> micro_batches;
  auto begin = batches[next].samples.begin();
  for (const Samples& each : batches[next].micro_batches) {
    micro_batches.emplace_back(begin, begin + each.count());
    begin += each.count();
  }
  course.cache->expect(std::move(micro_batches));
}

void take_epoch(Course& course, const std::vector<Batch>& batches, bool counts) {
  if (course.room.on_disk > 0) course.files->drop_pages();
  course.losses.clear();
  const std::optional<std::int64_t> read = bytes_from_storage();
  const SteadyTime start = std::chrono::steady_clock::now();
  expect(course, batches, 0);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    expect(course, batches, i + 1);
    const Batch& batch = batches[i];
    course.losses.push_back(
        course.run->step(course.step++, 1e-4, batch.micro_batches, false, {}, batch.samples).loss);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  if (!counts) return;
  course.seconds.push_back(time.count());
  if (read) course.from_disk.push_back(static_cast<double>(*bytes_from_storage() - *read));
}

// Throws if losses differ from the computed course or features are not where they should be.
void check(const Course& course, const Course& computed) {
  if (course.losses != computed.losses) {
    throw std::runtime_error("features " + course.room.name + " give other losses");
  }
  if (!course.cache) return;
  const std::vector<std::string> warnings = course.cache->take_warnings();
  if (!warnings.empty()) throw std::runtime_error(warnings.front());
  if (course.cache->count(FeatureTier::kMemory) != course.room.in_memory ||
      course.cache->count(FeatureTier::kDisk) != course.room.on_disk) {
    throw std::runtime_error("features " + course.room.name + " are not all there");
  }
}

void take_rounds(std::vector<Course>& courses, const Options& options, const Dataset& data) {
  const int epochs = kUncounted + options.rounds;
  const auto count = static_cast<int>(courses.size());
  Progress progress("epochs", static_cast<std::int64_t>(epochs) * count, options.quiet, "epochs");
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<Batch> batches = make_epoch(options, data, epoch);
    for (int turn = 0; turn < count; ++turn) {
      Course& course = courses[static_cast<std::size_t>((epoch + turn) % count)];
      take_epoch(course, batches, epoch >= kUncounted);
      progress.update(static_cast<std::int64_t>(epoch) * count + turn + 1, course.room.name);
    }
    for (const Course& course : courses) check(course, courses.front());
  }
}

std::string megabytes(double bytes) { return fixed(bytes * 1e-6, 1); }

std::vector<std::string> describe(const Course& course, const Course& computed,
                                  std::uint64_t seed) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < course.seconds.size(); ++i) {
    ratios.push_back(course.seconds[i] / computed.seconds[i]);
  }
  const RatioInterval ratio = bootstrap_ratio(ratios, seed);
  const Spread time = find_spread(course.seconds);
  return {course.room.name, to_range_text(time.median, time.least, time.most, 3),
          to_range_text(ratio.median, ratio.low, ratio.high, 3),
          course.room.on_disk > 0 ? verdict_at_most(ratio.low, ratio.high, kBar) : "-",
          course.from_disk.empty() ? "-" : megabytes(find_spread(course.from_disk).median)};
}

ExitCode run(const Flags& flags) {
  const Options options = read_options(flags);
  const VitConfig& model = options.model.config;
  const Dataset data =
      make_synthetic(options.samples, 1, model.channels, model.image, model.classes, options.seed);
  std::vector<Course> courses;
  for (const Room& room : list_rooms(options.samples)) {
    courses.push_back(begin(room, options, data));
  }
  const ForeignLoad load;
  take_rounds(courses, options, data);
  const std::optional<double> others = load.cores();
  Table table{{"features", "epoch s (least to most)", "of computed (95 %)", "bar " + fixed(kBar, 2),
               "MB from disk an epoch"},
              {}};
  for (const Course& course : courses) {
    table.rows.push_back(describe(course, courses.front(), options.seed));
  }
  const Bytes of_sample = courses.back().cache->bytes_per_sample();
  std::printf(
      "%s%s, %d blocks frozen beside the embedding; %lld bytes a sample, %s MB of %d "
      "samples; losses are the same; %d rounds; %s\n",
      to_text(table).c_str(), options.model.name.c_str(), options.frozen,
      static_cast<long long>(of_sample.count),
      megabytes(static_cast<double>(of_sample.count) * options.samples).c_str(), options.samples,
      options.rounds, to_load_text(others).c_str());
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_disk_tier",
                  "Compares reading cached features from memory and disk with computing them.",
                  "bench_disk_tier [--model tiny|wide|base] [--frozen N] [--samples N] "
                  "[--rounds N] [--folder DIR]"};
  return run_verb(verb, argc, argv, describe_flags(), run);
}
