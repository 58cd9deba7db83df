// Step times of every schedule that flushes, on cores or on streams of a GPU, beside one device;
// one JSON line each. `one_device_ms` is the same batch on one device without a pipeline,
// `same_bits` says whether the weights are its. `action_overhead_us` is what an F or B costs beside
// its layers, where backwards come whole; `step_overhead_us` a step beside its actions;
// `peak_bytes` what the GPU's tensors have taken at most since the program began. `spans_ms` is the
// time from the first span of a step to its last, as events tell it, `host_waits` how often the
// host waits in a step, of all devices. With --waits each line has beside them the step of a host
// that waits after every action: `waiting_ms`, `over_waiting`, `same_bits_waiting`.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "exec/devices/host_facts.h"
#include "exec/devices/kernel_choice.h"
#include "exec/devices/load_accelerator.h"
#include "exec/measuring/layer_times.h"
#include "exec/models/model_precision.h"
#include "exec/models/vit.h"
#include "exec/run/run.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/verbs/command_line.h"
#include "profiles/error.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/spread.h"

namespace {

namespace po = boost::program_options;
using namespace frazil;

constexpr int kWarmUp = 4;

struct Options {
  DeviceChoice processors;
  std::vector<int> devices = {2};
  std::string schedules;  // ",gpipe,1f1b,"; empty: all
  BenchModel model;
  Precision precision = Precision::kFp32;
  int micro_batches = 8;
  int steps = 15;
  bool compares_waiting = false;
};

struct Measured {
  Spread milliseconds;
  Spread spans;                 // in milliseconds
  std::int64_t host_waits = 0;  // of a step
  Overheads overheads;
  std::uint64_t hash = 0;
  double loss = 0;  // of the last step
  std::string devices;
  std::int64_t peak_bytes = 0;  // of a GPU
};

po::options_description describe_flags() {
  po::options_description flags("flags", 100);
  const auto text = [] { return po::value<std::string>(); };
  flags.add_options()                                                                          //
      ("device", text(), "cpu (default) or cuda")                                              //
      ("devices", text(), "how many, a comma list; default: 2")                                //
      ("schedules", text(), "a comma list of what simulate lists, or replicas; default: all")  //
      ("gpus", text(), "which GPUs, as 0,1; default: all")                                     //
      ("waits", po::bool_switch(), "beside each, a host that waits after every action")        //
      ("share", po::bool_switch(), "streams share the GPU, without parts of their own")        //
      ("model", text(), "tiny (default), wide, base, vit-b16 or bert-large")                   //
      ("precision", text(), "fp32 (default) or bf16")                                          //
      ("micro-batches", text(), "of a step, default 8")                                        //
      ("steps", text(), "that count, default 15");
  return flags;
}

Options read_options(const Flags& flags) {
  Options options;
  options.processors = read_processors(flags);
  options.processors.splits = !is_set(flags, "share");
  options.compares_waiting = is_set(flags, "waits") && options.processors.kind == DeviceKind::kCuda;
  if (const auto counts = optional_text(flags, "devices")) {
    options.devices = checked_flags("--devices", *counts, 1, 64);
  }
  if (const auto names = optional_text(flags, "schedules")) options.schedules = "," + *names + ",";
  options.model = find_bench_model(optional_text(flags, "model").value_or("tiny"));
  const std::string precision = optional_text(flags, "precision").value_or("fp32");
  if (known_name("--precision", precision, kPrecisionNames) == "bf16") {
    options.precision = Precision::kBf16;
  }
  options.micro_batches = integer_or(flags, "micro-batches", options.micro_batches, 1, 64);
  options.steps = integer_or(flags, "steps", options.steps, 1, 1000);
  return options;
}

Measured measure(const Options& options, const BenchPlan& shape) {
  const OptimizerConfig optimizer = momentum_sgd();
  const int devices = shape.devices * shape.replicas;
  Run run(with_precision(make_vit(options.model.config), options.precision), optimizer, 1, devices,
          {.devices = options.processors});
  run.transition_to(make_bench_plan(run.structure(), shape));
  const auto batches = make_batches(options.model.config, shape, kWarmUp + options.steps, 1);
  std::vector<double> milliseconds;
  std::vector<double> spans;
  const auto count_waits = [&run, devices] {
    std::int64_t waits = 0;
    for (int d = 0; d < devices; ++d) {
      waits += run.devices()[static_cast<std::size_t>(d)].host_waits();
    }
    return waits;
  };
  std::int64_t waits = 0;
  OverheadMeter overheads;
  double loss = 0;
  Step step = 0;
  // Timed by themselves first, then with their layers.
  for (const bool layers : {false, true}) {
    run.measure({.layers = layers});
    for (const std::vector<Samples>& batch : batches) {
      const std::int64_t waits_before = count_waits();
      const SteadyTime start = std::chrono::steady_clock::now();
      const StepResult result = run.step(step++, optimizer.learning_rate, batch, true);
      const std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - start;
      const bool counts = &batch - batches.data() >= kWarmUp;
      if (layers && counts) overheads.add_step(result.wall, result.spans, run.take_layer_samples());
      if (layers && !counts) (void)run.take_layer_samples();
      loss = result.loss;
      if (layers || !counts) continue;
      milliseconds.push_back(time.count());
      spans.push_back(to_ms(makespan({devices, result.spans})));
      waits = count_waits() - waits_before;
    }
  }
  Measured measured{.milliseconds = find_spread(milliseconds),
                    .spans = find_spread(spans),
                    .host_waits = waits,
                    .overheads = overheads.overheads(),
                    .hash = run.weight_hash(),
                    .loss = loss,
                    .devices = run.devices().text()};
  if (options.processors.kind == DeviceKind::kCuda) {
    measured.peak_bytes = load_accelerator().memory(0).peak;
  }
  return measured;
}

Options waiting_host(Options options) {
  options.processors.waits = true;
  return options;
}

bool has_whole_backwards(const Plan& plan, int devices) {
  const Schedule schedule = make_schedule(plan, devices);
  for (const std::vector<Action>& list : schedule.devices) {
    for (const Action& action : list) {
      if (action.kind != ActionKind::kForward && action.kind != ActionKind::kBackward) return false;
    }
  }
  return true;
}

nlohmann::ordered_json describe_machine(const Options& options) {
  nlohmann::ordered_json facts(host_facts());
  facts["model"] = options.model.name;
  facts["precision"] = name_of(options.precision);
  facts["micro_batches"] = options.micro_batches;
  if (options.processors.kind == DeviceKind::kCuda) {
    const GpuFacts gpu = load_accelerator().describe(0);
    facts["gpu"] = gpu.name;
    facts["gpu_memory_bytes"] = gpu.memory_bytes;
    facts["multiprocessors"] = gpu.multiprocessors;
    facts["driver"] = gpu.driver;
  }
  return facts;
}

void print(const nlohmann::ordered_json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

nlohmann::ordered_json to_line(const std::string& name, int devices, const Measured& measured,
                               const Measured& one) {
  constexpr double kMicro = 1e-3;
  return {
      {"schedule", name},
      {"devices", devices},
      {"on", measured.devices},
      {"median_ms", measured.milliseconds.median},
      {"least_ms", measured.milliseconds.least},
      {"most_ms", measured.milliseconds.most},
      {"one_device_ms", one.milliseconds.median},
      {"ratio", measured.milliseconds.median / one.milliseconds.median},
      {"same_bits", measured.hash == one.hash},
      {"loss", measured.loss},
      {"peak_bytes", measured.peak_bytes},
      {"spans_ms", measured.spans.median},
      {"host_waits", measured.host_waits},
      {"action_overhead_us", static_cast<double>(measured.overheads.per_action.count()) * kMicro},
      {"step_overhead_us", static_cast<double>(measured.overheads.per_step.count()) * kMicro}};
}

ExitCode run_steps(const Flags& flags) {
  const Options options = read_options(flags);
  print(describe_machine(options));
  const BenchPlan alone{.schedule = ScheduleKind::kGpipe,
                        .batch_size = options.model.batch_size,
                        .micro_batches = options.micro_batches};
  const Measured one = measure(options, alone);
  print(to_line("one device", 1, one, one));
  const ModelProfile structure =
      make_structure(with_precision(make_vit(options.model.config), options.precision), 1);
  bool same = true;
  const auto measure_and_print = [&](const std::string& name, int devices, const BenchPlan& shape) {
    if (!options.schedules.empty() &&
        options.schedules.find("," + name + ",") == std::string::npos) {
      return;
    }
    nlohmann::ordered_json line{{"schedule", name}, {"devices", devices}};
    try {
      const bool is_whole =
          shape.replicas == 1 && has_whole_backwards(make_bench_plan(structure, shape), devices);
      const Measured measured = measure(options, shape);
      line = to_line(name, devices, measured, one);
      same = same && measured.hash == one.hash;
      if (!is_whole) line.erase("action_overhead_us");
      if (options.compares_waiting) {
        const Measured waiting = measure(waiting_host(options), shape);
        line["waiting_ms"] = waiting.milliseconds.median;
        line["over_waiting"] = measured.milliseconds.median / waiting.milliseconds.median;
        line["same_bits_waiting"] = measured.hash == waiting.hash;
        same = same && measured.hash == waiting.hash;
      }
    } catch (const InfeasibleError& error) {
      line["infeasible"] = error.what();
    }
    print(line);
  };
  for (const int devices : options.devices) {
    for (const ScheduleFacts& facts : all_schedules()) {
      if (facts.versions != WeightVersions::kSync) continue;
      BenchPlan shape = alone;
      shape.schedule = facts.kind;
      shape.devices = devices;
      if (shape.micro_batches % shape.pipelines() != 0) continue;
      measure_and_print(std::string(schedule_name(facts.kind)), devices, shape);
    }
    BenchPlan replicas = alone;
    replicas.replicas = devices;
    if (replicas.micro_batches % devices == 0) measure_and_print("replicas", devices, replicas);
  }
  return same ? ExitCode::kOk : ExitCode::kFailure;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_kernels();
  const Verb verb{"device_steps", "Times every schedule on cores or on streams of a GPU.",
                  "device_steps [--device cuda] [--devices 2,4]"};
  return run_verb(verb, argc, argv, describe_flags(), run_steps);
}
