// Implements frazil verify: compares traces with a baseline, or hands over to frazil-verify-plan,
// which runs a plan and needs libtorch.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "analysis/guard/baseline_json.h"
#include "analysis/guard/guard_answer.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "planner/verbs/verify_flags.h"
#include "traces/kineto/step_series.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

constexpr double kPercent = 100;

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  describe_verify(flags);
  return flags;
}

KinetoOptions read_options(const Flags& values) {
  KinetoOptions options;
  options.micro_batches = integer_or(values, "micro-batches", 1, 1, kMostCounted);
  if (const auto prefix = optional_text(values, "layer-ranges")) {
    options.layer_prefix = *prefix;
    options.needs_ranges = true;
    if (prefix->empty()) refuse_flags("an empty --layer-ranges", "the begin of a name");
  }
  return options;
}

Provenance describe_question(const std::vector<StepSeries>& ranks, const KinetoOptions& options) {
  const StepSeries& series = ranks.front();
  return {{"measured_by", "trace"},
          {"ranks", fmt::format("{}", ranks.size())},
          {"layers_by", series.layers_by == LayerSource::kRanges ? "ranges" : "operations"},
          {"time", series.is_device_time ? "device" : "host"},
          {"micro_batches", fmt::format("{}", options.micro_batches.value_or(1))}};
}

Provenance describe_host(const std::vector<StepSeries>& ranks) {
  std::set<std::string> gpus;
  for (const StepSeries& series : ranks) gpus.insert(series.gpus.begin(), series.gpus.end());
  std::string names;
  for (const std::string& gpu : gpus) names += (names.empty() ? "" : ", ") + to_one_line(gpu);
  return {{"gpus", names.empty() ? "none" : names}};
}

enum class Part { kAll, kFirstHalf, kSecondHalf };

std::vector<double> take(const std::vector<std::int64_t>& times, Part part) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  switch (part) {
    case Part::kAll:
      return {times.begin(), times.end()};
    case Part::kFirstHalf:
      return {times.begin(), middle};
    case Part::kSecondHalf:
      return {middle, times.end()};
  }
  ENSURE(false, "unknown part of a trace");
}

// Layers of no time stand for nothing that could move. With several ranks the values of each have
// its number: a rank that is slow must not hide among the others.
std::vector<GuardedValue> sum_up(const std::vector<StepSeries>& ranks, Part part) {
  std::vector<GuardedSeries> all;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const StepSeries& series = ranks[r];
    const std::string rank = ranks.size() == 1 ? "" : fmt::format("rank {}: ", r);
    all.push_back({GuardedKind::kStep, rank + "step", take(series.steps, part)});
    for (const LayerSeries& layer : series.layers) {
      all.push_back({GuardedKind::kLayer, rank + layer.name, take(layer.times, part)});
    }
    all.push_back({GuardedKind::kLink, rank + "communication", take(series.communication, part)});
  }
  return sum_up(all);
}

std::vector<StepSeries> read_ranks(const std::vector<std::string>& traces,
                                   const KinetoOptions& options) {
  std::vector<StepSeries> ranks;
  for (const std::string& trace : traces) ranks.push_back(read_step_series(trace, options));
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    if (ranks[r].layers_by != ranks[0].layers_by) {
      throw InputError(traces[r], 0, "layers found in another way", "that of the first trace");
    }
    if (ranks[r].is_device_time != ranks[0].is_device_time) {
      throw InputError(traces[r], 0, ranks[r].is_device_time ? "device work" : "no device work",
                       "the same as in the first trace");
    }
  }
  return ranks;
}

// What moved shows in the whole trace and in each of its halves.
GuardReport compare(const Baseline& baseline, const std::string& file, const Baseline& today,
                    const std::vector<std::vector<GuardedValue>>& halves, double floor) {
  std::vector<std::vector<Movement>> parts;
  for (const auto& half : halves) {
    parts.push_back(find_movements(baseline.values, half, floor));
  }
  GuardReport report{file,
                     baseline.fingerprint,
                     today.fingerprint,
                     find_movements(baseline.values, today.values, floor),
                     {}};
  report.missing = find_missing_anywhere(baseline.values, halves);
  report.added = find_missing(today.values, baseline.values);
  report.conclusion = conclude_guard(report.movements, parts, Guarded::kTrace, report.missing);
  return report;
}

ExitCode guard_traces(const Flags& values) {
  refuse_together(values, "--trace",
                  {"run", "cluster", "plan", "device", "blocks", "steps", "accept-load", "plant",
                   "procs", "seed"});
  const std::vector<std::string> traces = text_list(values, "trace");
  const std::optional<BaselineFile> named = read_baseline_file(values);
  if (!named) refuse_flags("--trace alone", "--baseline, or --write-baseline on a good day");
  std::vector<NamedFile> inputs = named_files(values, {"baseline"});
  for (const std::string& trace : traces) inputs.push_back({"--trace", trace});
  refuse_overwriting(inputs, named_files(values, {"write-baseline"}));
  const KinetoOptions options = read_options(values);
  const double floor = integer_or(values, "bar", 3, 1, 1000) / kPercent;
  const std::vector<StepSeries> ranks = read_ranks(traces, options);
  const Baseline today{describe_question(ranks, options), describe_host(ranks), 0,
                       sum_up(ranks, Part::kAll)};
  const bool as_json = is_set(values, "json");
  const std::vector<std::vector<GuardedValue>> halves{sum_up(ranks, Part::kFirstHalf),
                                                      sum_up(ranks, Part::kSecondHalf)};
  if (named->is_written) {
    const std::string reason = refuse_good_day(today.values, halves, Guarded::kTrace);
    return keep_baseline(today, reason, named->path, as_json);
  }
  const Baseline baseline = read_baseline(named->path);
  refuse_other_question(baseline, today, named->path);
  const GuardReport report = compare(baseline, named->path, today, halves, floor);
  print_answer(as_json ? guard_json(report) : print_guard(report));
  return exit_code_of(report.conclusion.verdict);
}

// Starts the program that runs plans, with all arguments. Returns only if that could not be
// started.
ExitCode start_verify_plan(char** argv) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "frazil-verify-plan";
  std::fflush(stdout);
  execv(program.c_str(), argv);
  throw std::runtime_error(fmt::format(
      "found no {}, which runs plans and is built with libtorch ({}): build all programs where "
      "./setup.sh has fetched libtorch, or install the component with libtorch; --trace needs none",
      program.string(), std::strerror(errno)));
}

int run_verify_verb(int argc, char** argv) {
  return run_verb(verify_verb(), argc, argv, describe_flags(), [&](const Flags& values) {
    return values.count("trace") > 0 ? guard_traces(values) : start_verify_plan(argv);
  });
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run_verify_verb(argc, argv); }
