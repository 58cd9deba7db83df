// clang-format off
// Measures what a cache of the frozen prefix saves if it has room for a part of the samples: epochs
// over the digits on one device, each in its own order, with room for 0, 20, 50, 80 and 100 % of
// the samples. The epoch that fills the cache and the one that tries sizes of batches do not count.
//   found    samples read from the cache, as a share of those asked for
//   whole    micro-batches that ran no frozen layer
//   in part  micro-batches that ran frozen layers for their missing samples alone
//   time     epoch / epoch without a cache of the same round; median and range over the rounds
// clang-format on

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "analysis/tables/table.h"
#include "exec/cache/prefix_cache.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/process_memory.h"
#include "exec/models/vit.h"
#include "exec/run/run.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/spread.h"
#include "tests/bench/support/verdict.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kBatch = 32;
constexpr int kUncounted = 2;  // epochs

struct Options {
  std::string run = "exec/runs/digits.json";
  int frozen = 5;  // blocks, with the embedding
  int micro_batch = 8;
  int rounds = 5;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"run", "configuration, default exec/runs/digits.json"},
       {"frozen", "blocks of 8, the embedding among them, default 5"},
       {"micro-batch", "samples of one, a divisor of the batch of 32, default 8"},
       {"rounds", "epochs of each that count, default 5"}});
}

// One amount of room: a run, its cache, its results.
struct Course {
  int percent = 0;
  std::unique_ptr<PrefixCache> cache = {};
  std::unique_ptr<Run> run = {};  // destroyed before the cache
  Step step = 0;
  std::vector<double> seconds = {};
  FeatureCounts counts = {};  // counts before the epochs that count
  PrefixCounts micro_batches = {};
  double loss = 0;
};

Course begin(const Options& options, const RunConfig& config, const Dataset& data,
             const FileSystem& files, int percent) {
  Course course{.percent = percent};
  course.run = std::make_unique<Run>(make_model(config.model), config.optimizer, config.seed, 1);
  Run& run = *course.run;
  Plan plan;
  plan.model_hash = model_hash(run.structure());
  plan.micro_batch_size = options.micro_batch;
  plan.batch_size = kBatch;
  plan.mask = FreezeMask::frozen_prefix(static_cast<int>(run.structure().blocks.size()),
                                        BlockId{options.frozen - 1});
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe, .in_flight = {}};
  plan.cache_frozen_prefix = percent > 0;
  plan.pipelines = {
      make_pipeline(static_cast<int>(run.model().layers.size()), {}, {DeviceId{0}},
                    {MicroBatchId{0}, MicroBatchId{kBatch / options.micro_batch - 1}})};
  if (percent > 0) {
    const auto outputs = run.outputs(data.train.narrow(0, 1));
    const auto feature = static_cast<std::int64_t>(outputs[0][0].nbytes());
    const Bytes room{data.train.count() * percent / 100 * ((feature + 63) / 64 * 64)};
    course.cache = std::make_unique<PrefixCache>(run.model(), outputs, data.train.count(), files,
                                                 PrefixCacheOptions{.limits = {room, {}, {}}});
    run.attach(*course.cache);
  }
  run.transition_to(plan);
  return course;
}

void take_epoch(Course& course, const Options& options, const Dataset& data, int epoch) {
  const auto order = epoch_order(data.train.count(), 1, epoch);
  if (epoch == kUncounted && course.cache) {
    course.counts = course.cache->counts();
    course.micro_batches = course.cache->prefix_counts();
  }
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t first = 0; first < data.train.count(); first += kBatch) {
    const auto count = std::min<std::int64_t>(kBatch, data.train.count() - first);
    const auto micro_batches =
        gather_micro_batches(data.train, order, first, count, options.micro_batch);
    course.loss = course.run
                      ->step(course.step++, 1e-3, micro_batches, false, {},
                             {order.begin() + first, order.begin() + first + count})
                      .loss;
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  if (epoch >= kUncounted) course.seconds.push_back(time.count());
}

std::string percent_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-"
                    : fixed(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1);
}

ExitCode run(const Flags& flags) {
  Options options;
  options.run = optional_text(flags, "run").value_or(options.run);
  options.frozen = integer_or(flags, "frozen", options.frozen, 1, 7);
  options.micro_batch = integer_or(flags, "micro-batch", options.micro_batch, 1, kBatch);
  options.rounds = integer_or(flags, "rounds", options.rounds, 1, 1000);
  if (kBatch % options.micro_batch != 0) {
    refuse_flags("--micro-batch " + std::to_string(options.micro_batch), "a divisor of 32");
  }
  const RunConfig config = read_run_config(options.run);
  const Dataset data = load_data(config);
  const FileSystem files = real_file_system();
  std::vector<Course> courses;
  courses.reserve(5);
  for (const int percent : {0, 20, 50, 80, 100})
    courses.push_back(begin(options, config, data, files, percent));
  const ForeignLoad load;
  for (int epoch = 0; epoch < kUncounted + options.rounds; ++epoch) {
    for (Course& course : courses) take_epoch(course, options, data, epoch);
  }
  Table table{{"room %", "found %", "whole %", "in part %", "time", "same loss"}, {}};
  for (const Course& course : courses) {
    FeatureCounts counts;
    PrefixCounts micro_batches;
    if (course.cache) {
      counts = course.cache->counts();
      micro_batches = course.cache->prefix_counts();
    }
    std::vector<double> ratios;
    for (std::size_t i = 0; i < course.seconds.size(); ++i) {
      ratios.push_back(course.seconds[i] / courses[0].seconds[i]);
    }
    const Spread spread = find_spread(ratios);
    const std::int64_t found = counts.found - course.counts.found;
    const std::int64_t asked = micro_batches.asked - course.micro_batches.asked;
    table.rows.push_back({std::to_string(course.percent),
                          percent_of(found, found + counts.missed - course.counts.missed),
                          percent_of(micro_batches.whole - course.micro_batches.whole, asked),
                          percent_of(micro_batches.parts - course.micro_batches.parts, asked),
                          to_range_text(spread.median, spread.least, spread.most, 3),
                          course.loss == courses[0].loss ? "yes" : "NO"});
  }
  const std::optional<double> others = load.cores();
  std::printf("%s%d of 8 blocks frozen, micro-batches of %d; %s\n", to_text(table).c_str(),
              options.frozen, options.micro_batch, to_load_text(others).c_str());
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  keep_freed_memory();
  const Verb verb{"bench_partly_cached",
                  "Measures a cache of the frozen prefix with room for some samples.",
                  "bench_partly_cached [--run FILE] [--frozen N] [--micro-batch N] [--rounds N]"};
  return run_verb(verb, argc, argv, describe_flags(), run);
}
