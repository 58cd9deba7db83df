// clang-format off
// Measures what the executor costs beside its kernels, per micro-batch and stage. The model has
// next to no arithmetic (4 blocks, 16 wide, 5 tokens, 64 samples cut into M), so handling shows.
// Every synchronous schedule of the menu has a benchmark on two devices, except varuna, which
// recomputes and so does other work; gpipe and 1f1b have one on one device too. A benchmark whose
// shape its schedule refuses says so.
//
// Definitions, all times of one step; stages are those that a micro-batch passes, devices x chunks:
//   direct    the same kernels in one thread without executor: forward_layer of every layer, the
//             loss and its value, one autograd::grad per layer, gradients added up, one
//             update_layer per layer; all forwards first for gpipe and looped-bfs, else each
//             backward follows its forward. What a split backward costs more counts as overhead.
//   waiting   of a device: its receives, less what each costs when its message is already there (as
//             much as the step's shortest receive).
//   busy      sum over devices of (first span's start to last span's end - waiting), plus what
//             Run::step takes beyond the spans of all devices. With one stage this is the wall
//             time.
//   overhead_ms_per_micro_batch_and_stage
//             at one M: median of (busy - direct) / (M x stages), step and direct step back to
//             back; in the benchmarks named slope: what that difference grows by from M = 4 to M =
//             64, over 60 x stages, which leaves out the fixed cost of a step.
//   cpu_overhead_ms
//             that overhead from CPU time of the whole process in place of busy and direct: hardly
//             moved by other programs, but the spinning of receives counts as work.
//   cpu_ms, direct_cpu_ms
//             that CPU time, of a step and of a direct step.
//   action_ms (F and B spans - their layers' times) per action, of further steps that time layers;
//             two actions make a micro-batch and stage. Excludes handling inside a layer's time.
//             Only of schedules with whole backwards.
//   wall_slope_over_share_ms
//             growth of the step's wall time per micro-batch less growth of direct / stages: what a
//             user sees, waiting and uneven stages included. It can be compared with this figure
//             of other runtimes.
// clang-format on

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "exec/devices/kernel_choice.h"
#include "exec/measuring/layer_times.h"
#include "exec/models/vit.h"
#include "exec/run/run.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "tests/bench/steps/direct_training.h"
#include "tests/bench/support/bench_run.h"
#include "tests/bench/support/spread.h"

namespace frazil {
namespace {

constexpr double kLearningRate = 0.01;
constexpr std::uint64_t kSeed = 1;
constexpr int kFew = 4;
constexpr int kMany = 64;

VitConfig dispatch_model() {
  return {.image = 8, .channels = 3, .patch = 4, .dim = 16, .blocks = 4, .heads = 2, .classes = 10};
}

double milliseconds(Duration time) { return static_cast<double>(time.count()) * 1e-6; }

double cpu_milliseconds() { return cpu_seconds() * 1e3; }

double median(const std::vector<double>& values) { return find_spread(values).median; }

struct StepTimes {
  double wall = 0;  // all in milliseconds
  double busy = 0;
  double direct = 0;
  double cpu = 0;
  double direct_cpu = 0;

  double overhead() const { return busy - direct; }
  double cpu_overhead() const { return cpu - direct_cpu; }
};

Duration waiting(const Timeline& device) {
  Duration sum{0};
  Duration shortest = Duration::max();
  for (const Span& span : device.spans) {
    if (span.lane != Lane::kReceive) continue;
    sum += span.duration();
    shortest = std::min(shortest, span.duration());
  }
  const auto receives = std::count_if(device.spans.begin(), device.spans.end(),
                                      [](const Span& s) { return s.lane == Lane::kReceive; });
  return receives == 0 ? Duration{0} : sum - receives * shortest;
}

Duration busy_time(const StepResult& result) {
  std::map<DeviceId, Timeline> by_device;
  Timeline all;
  for (const Span& span : result.spans) {
    by_device[span.device].spans.push_back(span);
    all.spans.push_back(span);
  }
  Duration sum = result.wall - makespan(all);
  for (const auto& [device, timeline] : by_device) sum += makespan(timeline) - waiting(timeline);
  return sum;
}

// Steps a run and its direct twin side by side.
class TestBed {
 public:
  explicit TestBed(const BenchPlan& shape)
      : shape_(shape),
        batch_(make_batches(dispatch_model(), shape, 1, kSeed).front()),
        run_(make_vit(dispatch_model()), momentum_sgd(), kSeed, shape.devices),
        direct_(make_vit(dispatch_model()), momentum_sgd(), kSeed),
        direct_thread_(1) {
    run_.transition_to(make_bench_plan(run_.structure(), shape));
    for (int i = 0; i < 3; ++i) {
      measure();
      ENSURE(std::abs(loss_ - direct_loss_) < 1e-5, "the direct loop does the same work");
    }
  }

  StepTimes measure() {
    StepTimes times;
    double cpu = cpu_milliseconds();
    const StepResult result = run_.step(step_++, kLearningRate, batch_, /*record=*/true);
    times.cpu = cpu_milliseconds() - cpu;
    times.wall = milliseconds(result.wall);
    times.busy = milliseconds(busy_time(result));
    loss_ = result.loss;
    direct_thread_.run([&](DeviceId) {
      cpu = cpu_milliseconds();
      const SteadyTime start = std::chrono::steady_clock::now();
      direct_loss_ = direct_.step(batch_, all_forwards_first(), kLearningRate);
      const auto elapsed = std::chrono::steady_clock::now() - start;
      times.direct = milliseconds(std::chrono::duration_cast<Duration>(elapsed));
      times.direct_cpu = cpu_milliseconds() - cpu;
    });
    return times;
  }

  // Runs one more step with layers timed.
  void measure_actions(OverheadMeter& meter) {
    run_.measure({.layers = true});
    const StepResult result = run_.step(step_++, kLearningRate, batch_, /*record=*/true);
    meter.add_step(result.wall, result.spans, run_.take_layer_samples());
    run_.measure({});
  }

 private:
  bool all_forwards_first() const {
    return shape_.schedule == ScheduleKind::kGpipe || shape_.schedule == ScheduleKind::kLoopedBfs;
  }

  BenchPlan shape_;
  std::vector<Samples> batch_;
  Run run_;
  DirectTraining direct_;
  Workers direct_thread_;  // on the same core as device 0
  Step step_ = 0;
  double loss_ = 0;
  double direct_loss_ = 0;
};

// Says whether the schedule has whole backwards (B) alone.
bool has_whole_backwards(ScheduleKind kind) {
  return kind == ScheduleKind::kGpipe || kind == ScheduleKind::kLoopedBfs ||
         kind == ScheduleKind::kOneForwardOneBackward ||
         kind == ScheduleKind::kEagerOneForwardOneBackward || kind == ScheduleKind::kInterleaved ||
         kind == ScheduleKind::kChimera || kind == ScheduleKind::kHanayo;
}

struct Sampled {
  std::vector<double> overheads;
  std::vector<double> cpu_overheads;
  std::vector<double> walls;
  std::vector<double> cpu;
  std::vector<double> direct;
  std::vector<double> direct_cpu;
};

void overhead(benchmark::State& state, ScheduleKind kind) {
  const BenchPlan shape{.schedule = kind,
                        .devices = static_cast<int>(state.range(0)),
                        .micro_batches = static_cast<int>(state.range(1))};
  TestBed bed(shape);
  Sampled taken;
  OverheadMeter meter;
  for ([[maybe_unused]] auto _ : state) {
    const StepTimes times = bed.measure();
    state.SetIterationTime(times.wall * 1e-3);
    taken.overheads.push_back(times.overhead());
    taken.cpu_overheads.push_back(times.cpu_overhead());
    taken.cpu.push_back(times.cpu);
    taken.direct.push_back(times.direct);
    taken.direct_cpu.push_back(times.direct_cpu);
    if (has_whole_backwards(kind)) bed.measure_actions(meter);
  }
  const int parts = shape.micro_batches * shape.stages();
  state.counters["overhead_ms_per_micro_batch_and_stage"] = median(taken.overheads) / parts;
  state.counters["cpu_overhead_ms"] = median(taken.cpu_overheads) / parts;
  state.counters["cpu_ms"] = median(taken.cpu);
  state.counters["direct_ms"] = median(taken.direct);
  state.counters["direct_cpu_ms"] = median(taken.direct_cpu);
  if (has_whole_backwards(kind)) {
    state.counters["action_ms"] = milliseconds(meter.overheads().per_action);
  }
}

void slope(benchmark::State& state, ScheduleKind kind) {
  BenchPlan shape{.schedule = kind, .devices = static_cast<int>(state.range(0))};
  shape.micro_batches = kFew;
  TestBed few(shape);
  shape.micro_batches = kMany;
  TestBed many(shape);
  Sampled grown;
  for ([[maybe_unused]] auto _ : state) {
    const StepTimes small = few.measure();
    const StepTimes large = many.measure();
    state.SetIterationTime((small.wall + large.wall) * 1e-3);
    grown.overheads.push_back(large.overhead() - small.overhead());
    grown.cpu_overheads.push_back(large.cpu_overhead() - small.cpu_overhead());
    grown.walls.push_back(large.wall - small.wall);
    grown.direct.push_back(large.direct - small.direct);
  }
  constexpr double kMore = kMany - kFew;
  const double parts = kMore * shape.stages();
  const double share = median(grown.direct) / shape.devices;
  state.counters["overhead_ms_per_micro_batch_and_stage"] = median(grown.overheads) / parts;
  state.counters["cpu_overhead_ms"] = median(grown.cpu_overheads) / parts;
  state.counters["wall_slope_over_share_ms"] = (median(grown.walls) - share) / kMore;
  state.counters["direct_slope_ms"] = median(grown.direct) / kMore;
}

using Body = void (*)(benchmark::State&, ScheduleKind);

// Runs a benchmark; a shape that its schedule refuses is an error of this benchmark alone.
void run_or_say(benchmark::State& state, Body body, ScheduleKind kind) {
  state.SetLabel(std::string(schedule_name(kind)));
  try {
    body(state, kind);
  } catch (const InfeasibleError& error) {
    state.SkipWithError(error.what());
  }
}

benchmark::internal::Benchmark* add(const std::string& name, Body body, ScheduleKind kind) {
  const std::string full = name + "/" + std::string(schedule_name(kind));
  return benchmark::RegisterBenchmark(
             full.c_str(), [body, kind](benchmark::State& state) { run_or_say(state, body, kind); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void add_benchmarks() {
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.versions != WeightVersions::kSync || facts.kind == ScheduleKind::kVaruna) continue;
    const bool is_basic =
        facts.kind == ScheduleKind::kGpipe || facts.kind == ScheduleKind::kOneForwardOneBackward;
    const std::vector<std::int64_t> devices =
        is_basic ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{2};
    add("overhead", overhead, facts.kind)
        ->ArgNames({"devices", "M"})
        ->ArgsProduct({devices, {kFew, 16, kMany}})
        ->Iterations(40);
    add("slope", slope, facts.kind)->ArgNames({"devices"})->ArgsProduct({devices})->Iterations(60);
  }
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) {
  frazil::prepare_kernels();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  frazil::add_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
