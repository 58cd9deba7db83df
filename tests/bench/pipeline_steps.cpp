// Step times of a two-stage pipeline on two devices: a vision transformer of 12 blocks, 192 wide,
// 65 tokens, batch 64, SGD with momentum 0.9, cut after six blocks; what against_torch.py puts
// beside stock PyTorch. One JSON line; its keys mean what they mean there: a step lasts until its
// slowest device is done, optimizer included, and `others` is how many cores other programs kept
// busy.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "exec/foreign_load.h"
#include "exec/numerics.h"
#include "exec/verb_inputs.h"
#include "planner/command_line.h"
#include "tests/bench/bench_run.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr double kLearningRate = 0.01;

struct Options {
  BenchPlan plan;
  int steps = 20;  // warm-up included
  int warm_up = 3;
  std::uint64_t seed = 1;
};

struct Measured {
  std::vector<double> seconds;  // of the steps after the warm-up
  std::vector<double> losses;   // of the first three steps
  std::optional<double> others;
};

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()                                                     //
      ("schedule", text(), "gpipe or 1f1b (default)")                     //
      ("micro-batches", text(), "of a step, a divisor of 64, default 8")  //
      ("steps", text(), "warm-up included, default 20")                   //
      ("warmup", text(), "steps that do not count, default 3")            //
      ("seed", text(), "of weights and data, default 1");
  return flags;
}

Options read_options(const Flags& flags) {
  Options options;
  options.plan.stages = 2;
  const std::string name = optional_text(flags, "schedule").value_or("1f1b");
  const std::optional<ScheduleKind> kind = find_schedule(name);
  if (kind != ScheduleKind::kGpipe && kind != ScheduleKind::kOneForwardOneBackward) {
    throw InputError("command line", 0, "--schedule " + name, "gpipe or 1f1b");
  }
  options.plan.schedule = *kind;
  options.plan.micro_batches =
      integer_or(flags, "micro-batches", options.plan.micro_batches, 1, options.plan.batch_size);
  if (options.plan.batch_size % options.plan.micro_batches != 0) {
    throw InputError("command line", 0,
                     "--micro-batches " + std::to_string(options.plan.micro_batches),
                     "a divisor of " + std::to_string(options.plan.batch_size));
  }
  options.steps = integer_or(flags, "steps", options.steps, 1, 1000);
  options.warm_up = integer_or(flags, "warmup", options.warm_up, 0, options.steps - 1);
  options.seed = static_cast<std::uint64_t>(integer_or(flags, "seed", 1, 0, 1'000'000));
  return options;
}

Measured measure(const Options& options) {
  const VitConfig config{
      .image = 32, .channels = 3, .patch = 4, .dim = 192, .blocks = 12, .heads = 3, .classes = 10};
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.momentum = 0.9;
  optimizer.weight_decay = 0;
  Run run(make_vit(config), optimizer, options.seed, options.plan.stages);
  run.switch_to(make_bench_plan(run.model(), run.structure(), options.plan));
  const auto batches = make_batches(config, options.plan, options.steps, options.seed);
  Measured measured;
  std::optional<ForeignLoad> foreign;
  for (int step = 0; step < options.steps; ++step) {
    if (step == options.warm_up) foreign.emplace();
    const SteadyTime start = std::chrono::steady_clock::now();
    const StepResult result =
        run.step(step, kLearningRate, batches[static_cast<std::size_t>(step)]);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (step >= options.warm_up) measured.seconds.push_back(elapsed.count());
    if (measured.losses.size() < 3) measured.losses.push_back(result.loss);
  }
  measured.others = foreign->cores();
  return measured;
}

double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Cuts a tenth at both ends, or one value of five to nine, as the other side of the comparison
// does.
double trimmed_at_both_ends(const std::vector<double>& sorted) {
  const std::size_t cut = sorted.size() >= 10 ? sorted.size() / 10 : (sorted.size() > 4 ? 1 : 0);
  const double sum = std::accumulate(sorted.begin() + static_cast<std::ptrdiff_t>(cut),
                                     sorted.end() - static_cast<std::ptrdiff_t>(cut), 0.0);
  return sum / static_cast<double>(sorted.size() - 2 * cut);
}

nlohmann::ordered_json to_record(const Options& options, Measured measured) {
  std::sort(measured.seconds.begin(), measured.seconds.end());
  const double middle = median(measured.seconds);
  nlohmann::ordered_json record{{"schedule", schedule_name(options.plan.schedule)},
                                {"micro_batches", options.plan.micro_batches},
                                {"steps", measured.seconds.size()},
                                {"median_s", middle},
                                {"trimmed_mean_s", trimmed_at_both_ends(measured.seconds)},
                                {"samples_per_s", options.plan.batch_size / middle},
                                {"losses", measured.losses}};
  record["others"] = measured.others ? nlohmann::ordered_json(*measured.others) : nullptr;
  return record;
}

ExitCode print_record(const Flags& flags) {
  const Options options = read_options(flags);
  std::printf("%s\n", to_record(options, measure(options)).dump().c_str());
  return ExitCode::kOk;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_numerics();
  const Verb verb{"bench_pipeline_steps", "Times the steps of a two-stage pipeline.",
                  "bench_pipeline_steps [--schedule gpipe|1f1b] [--micro-batches N] [--steps N]"};
  return run_verb(verb, argc, argv, describe_flags(), print_record);
}
