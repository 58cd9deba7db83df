// Measures step times on two devices: a vision transformer under one schedule, or as two replicas,
// or alone on one device, with SGD and momentum 0.9. tests/bench/steps/against_torch.py and
// bf16_against_torch.py compare them with stock PyTorch.
// The program prints one JSON line, whose keys mean what they mean in that script: a step lasts
// until its slowest device is done, optimizer included; `cuts` are the transformer layers before
// each stage but the first; `cpu_s` is CPU seconds per step of all devices; `others` is how many
// cores other programs kept busy.

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "exec/devices/foreign_load.h"
#include "exec/devices/kernel_choice.h"
#include "exec/models/model_precision.h"
#include "exec/models/vit.h"
#include "exec/run/run.h"
#include "planner/plan/schedule_facts.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"
#include "tests/bench/support/bench_flags.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/resident_memory.h"
#include "tests/bench/support/spread.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

struct Options {
  std::string schedule = "1f1b";  // the name that was asked for
  BenchModel model;
  BenchPlan plan;
  Precision precision = Precision::kFp32;
  int devices = 2;
  int steps = 20;  // warm-up included
  int warm_up = 3;
  std::uint64_t seed = 1;
};

struct Measured {
  Plan plan;
  std::vector<double> seconds;  // of each step after the warm-up
  double cpu_seconds = 0;       // all steps after the warm-up together
  std::vector<double> losses;   // of the first three steps
  std::optional<double> others;
};

po::options_description describe_flags() {
  return describe_bench_flags(
      {{"model", "tiny (default) or wide"},
       {"schedule",
        "1f1b (default), gpipe, interleaved, izb, zbv, or another that simulate lists; replicas: "
        "two, of one stage each; alone: one device"},
       {"precision", "fp32 (default) or bf16"},
       {"reduction", "exact (default) or fast"},
       {"micro-batches", "of a step, a divisor of the batch (64, of wide 32), default 8"},
       {"steps", "warm-up included, default 20"},
       {"warmup", "steps that do not count, default 3"},
       {"seed", "of weights and data, default 1"}});
}

// A schedule whose name in the baseline differs from ours.
struct OtherName {
  std::string_view name;
  ScheduleKind kind;
};
constexpr std::array kOtherNames = {OtherName{"interleaved", ScheduleKind::kInterleaved},
                                    OtherName{"izb", ScheduleKind::kInterleavedZb},
                                    OtherName{"zbv", ScheduleKind::kZbV}};

ScheduleKind read_schedule(const std::string& name) {
  const auto other = std::find_if(kOtherNames.begin(), kOtherNames.end(),
                                  [&](const OtherName& each) { return each.name == name; });
  const auto kind = other == kOtherNames.end() ? find_schedule(name) : other->kind;
  if (!kind || facts_of(*kind).versions != WeightVersions::kSync) {
    refuse_flags("--schedule " + name,
                 "1f1b, gpipe, interleaved, izb, zbv, replicas or another schedule that "
                 "flushes at the end of a step");
  }
  return *kind;
}

ReductionMode read_reduction(const std::string& name) {
  if (name == "fast") return ReductionMode::kFast;
  if (name != "exact") refuse_flags("--reduction " + name, "exact or fast");
  return ReductionMode::kExact;
}

void check_micro_batches(const BenchPlan& plan) {
  if (plan.batch_size % plan.micro_batches == 0 && plan.micro_batches % plan.pipelines() == 0) {
    return;
  }
  refuse_flags("--micro-batches " + std::to_string(plan.micro_batches),
               "a divisor of " + std::to_string(plan.batch_size) + " that " +
                   std::to_string(plan.pipelines()) + " divides");
}

Options read_options(const Flags& flags) {
  Options options;
  options.model = find_bench_model(optional_text(flags, "model").value_or("tiny"));
  options.schedule = optional_text(flags, "schedule").value_or(options.schedule);
  BenchPlan& plan = options.plan;
  plan.batch_size = options.model.batch_size;
  if (options.schedule == "replicas") {
    plan.replicas = options.devices;
  } else if (options.schedule == "alone") {
    options.devices = 1;
  } else {
    plan.schedule = read_schedule(options.schedule);
    plan.devices = options.devices;
  }
  const std::string precision = optional_text(flags, "precision").value_or("fp32");
  if (known_name("--precision", precision, kPrecisionNames) == "bf16") {
    options.precision = Precision::kBf16;
  }
  plan.reduction = read_reduction(optional_text(flags, "reduction").value_or("exact"));
  plan.micro_batches = integer_or(flags, "micro-batches", plan.micro_batches, 1, plan.batch_size);
  check_micro_batches(plan);
  options.steps = integer_or(flags, "steps", options.steps, 1, 1000);
  options.warm_up = integer_or(flags, "warmup", options.warm_up, 0, options.steps - 1);
  options.seed = read_seed(flags);
  return options;
}

Measured measure(const Options& options) {
  const OptimizerConfig optimizer = momentum_sgd();
  Run run(with_precision(make_vit(options.model.config), options.precision), optimizer,
          options.seed, options.devices);
  run.transition_to(make_bench_plan(run.structure(), options.plan));
  const auto batches =
      make_batches(options.model.config, options.plan, options.steps, options.seed);
  Measured measured{.plan = run.plan(), .seconds = {}, .losses = {}, .others = {}};
  std::optional<ForeignLoad> foreign;
  double cpu_before = 0;
  for (int step = 0; step < options.steps; ++step) {
    if (step == options.warm_up) {
      foreign.emplace();
      cpu_before = cpu_seconds();
    }
    const SteadyTime start = std::chrono::steady_clock::now();
    const StepResult result =
        run.step(step, optimizer.learning_rate, batches[static_cast<std::size_t>(step)]);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (step >= options.warm_up) measured.seconds.push_back(elapsed.count());
    if (measured.losses.size() < 3) measured.losses.push_back(result.loss);
  }
  measured.cpu_seconds = cpu_seconds() - cpu_before;
  measured.others = foreign->cores();
  return measured;
}

// Returns the mean without a tenth of the values at both ends, or without one value at both ends if
// there are five to nine, as the other side of the comparison does.
double trimmed_at_both_ends(const std::vector<double>& sorted) {
  const std::size_t cut = sorted.size() >= 10 ? sorted.size() / 10 : (sorted.size() > 4 ? 1 : 0);
  const double sum = std::accumulate(sorted.begin() + static_cast<std::ptrdiff_t>(cut),
                                     sorted.end() - static_cast<std::ptrdiff_t>(cut), 0.0);
  return sum / static_cast<double>(sorted.size() - 2 * cut);
}

// Lists the transformer layers before each stage but the first: the embedding is layer 0, then each
// transformer layer has two.
std::vector<int> list_cuts(const Pipeline& pipeline) {
  std::vector<int> cuts;
  for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
    cuts.push_back((pipeline.stages[s].layers.front().first.value - 1) / 2);
  }
  return cuts;
}

std::vector<std::vector<int>> list_devices(const Plan& plan) {
  std::vector<std::vector<int>> of_pipelines;
  for (const Pipeline& pipeline : plan.pipelines) {
    std::vector<int>& devices = of_pipelines.emplace_back();
    for (const Stage& stage : pipeline.stages) devices.push_back(stage.devices.front().value);
  }
  return of_pipelines;
}

nlohmann::ordered_json to_record(const Options& options, Measured measured) {
  std::sort(measured.seconds.begin(), measured.seconds.end());
  const auto steps = static_cast<double>(measured.seconds.size());
  const Spread spread = find_spread(measured.seconds);
  nlohmann::ordered_json record{
      {"model", options.model.name},
      {"schedule", options.schedule},
      {"plan", summarize(measured.plan)},
      {"cuts", list_cuts(measured.plan.pipelines.front())},
      {"devices", list_devices(measured.plan)},
      {"precision", name_of(options.precision)},
      {"reduction", options.plan.reduction == ReductionMode::kExact ? "exact" : "fast"},
      {"micro_batches", options.plan.micro_batches},
      {"micro_batch_size", measured.plan.micro_batch_size},
      {"steps", measured.seconds.size()},
      {"median_s", spread.median},
      {"least_s", spread.least},
      {"most_s", spread.most},
      {"trimmed_mean_s", trimmed_at_both_ends(measured.seconds)},
      {"samples_per_s", options.plan.batch_size / spread.median},
      {"cpu_s", measured.cpu_seconds / steps},
      {"peak_rss_mib", static_cast<double>(resident_peak()) / (1 << 20)},
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
  prepare_kernels();
  const Verb verb{"bench_pipeline_steps", "Times the training steps of a schedule on two devices.",
                  "bench_pipeline_steps [--model tiny|wide] [--schedule NAME|replicas|alone] "
                  "[--micro-batches N] [--steps N]"};
  return run_verb(verb, argc, argv, describe_flags(), print_record);
}
