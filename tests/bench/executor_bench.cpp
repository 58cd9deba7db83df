// What the executor costs beside its kernels, per micro-batch and stage. The model has next to no
// arithmetic (4 blocks, 16 wide, 5 tokens, 64 samples cut into M), so handling shows.
//
// Definitions, all times of one step:
//   direct    the same kernels in one thread without executor: forward_layer of every layer, the
//             loss and its value, one autograd::grad per layer, gradients added up, one
//             update_layer per layer, in the order of the schedule on one device.
//   waiting   of a device: its receives, less what each costs when its message is already there (as
//             much as the step's shortest receive).
//   busy      sum over devices of (first span's start to last span's end - waiting), plus what
//             Run::step takes beyond the spans of all devices. With one stage this is the wall
//             time.
//   overhead_ms_per_micro_batch_and_stage
//             at one M: median of (busy - direct) / (M x stages), step and direct step back to
//             back; in the benchmarks named slope: what that difference grows by from M = 4 to M =
//             64, over 60 x stages, which leaves out what a step costs once.
//   cpu_overhead_ms
//             the same from CPU time of the whole process in place of busy and direct: hardly moved
//             by other programs, but the spinning of receives counts as work.
//   action_ms (F and B spans - their layers' times) per action, of further steps that time layers;
//             two actions make a micro-batch and stage. Excludes handling inside a layer's time.
//   wall_slope_over_share_ms
//             growth of the step's wall time per micro-batch less growth of direct / stages: what a
//             user sees, waiting and uneven stages included. It can be compared with the same
//             figure of other runtimes.

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "exec/layer_times.h"
#include "exec/numerics.h"
#include "profiles/error.h"
#include "tests/bench/bench_run.h"
#include "tests/bench/direct_training.h"

namespace frazil {
namespace {

constexpr double kLearningRate = 0.01;
constexpr std::uint64_t kSeed = 1;
constexpr int kFew = 4;
constexpr int kMany = 64;

VitConfig dispatch_model() {
  return {.image = 8, .channels = 3, .patch = 4, .dim = 16, .blocks = 4, .heads = 2, .classes = 10};
}

OptimizerConfig plain_sgd() {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.weight_decay = 0;
  return optimizer;
}

double milliseconds(Duration time) { return static_cast<double>(time.count()) * 1e-6; }

// Of all threads of this process.
double cpu_milliseconds() {
  timespec time{};
  ENSURE(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0, "a process knows its CPU time");
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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

// A run and its direct twin, step by step side by side.
class TestBed {
 public:
  explicit TestBed(const BenchPlan& shape)
      : shape_(shape),
        batch_(make_batches(dispatch_model(), shape, 1, kSeed).front()),
        run_(make_vit(dispatch_model()), plain_sgd(), kSeed, shape.stages),
        direct_(make_vit(dispatch_model()), plain_sgd(), kSeed),
        direct_thread_(1) {
    run_.switch_to(make_bench_plan(run_.model(), run_.structure(), shape));
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
      direct_loss_ = direct_.step(batch_, shape_.schedule == ScheduleKind::kGpipe, kLearningRate);
      const auto elapsed = std::chrono::steady_clock::now() - start;
      times.direct = milliseconds(std::chrono::duration_cast<Duration>(elapsed));
      times.direct_cpu = cpu_milliseconds() - cpu;
    });
    return times;
  }

  // One more step with layers timed. The direct twin takes it too, so that both stay at equal
  // weights.
  void measure_actions(OverheadMeter& meter) {
    run_.measure({.layers = true});
    const StepResult result = run_.step(step_++, kLearningRate, batch_, /*record=*/true);
    meter.add_step(result.wall, result.spans, run_.take_layer_samples());
    run_.measure({});
  }

 private:
  BenchPlan shape_;
  std::vector<Samples> batch_;
  Run run_;
  DirectTraining direct_;
  Workers direct_thread_;  // on the same core as device 0
  Step step_ = 0;
  double loss_ = 0;
  double direct_loss_ = 0;
};

ScheduleKind schedule_of(const benchmark::State& state) {
  return state.range(0) == 0 ? ScheduleKind::kGpipe : ScheduleKind::kOneForwardOneBackward;
}

void overhead(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(1));
  const int micro_batches = static_cast<int>(state.range(2));
  TestBed bed({.schedule = schedule_of(state), .stages = stages, .micro_batches = micro_batches});
  std::vector<double> overheads;
  std::vector<double> cpu_overheads;
  std::vector<double> direct;
  OverheadMeter meter;
  for ([[maybe_unused]] auto _ : state) {
    const StepTimes times = bed.measure();
    state.SetIterationTime(times.wall * 1e-3);
    overheads.push_back(times.overhead());
    cpu_overheads.push_back(times.cpu_overhead());
    direct.push_back(times.direct);
    bed.measure_actions(meter);
  }
  state.SetLabel(std::string(schedule_name(schedule_of(state))));
  state.counters["overhead_ms_per_micro_batch_and_stage"] =
      median(overheads) / (micro_batches * stages);
  state.counters["cpu_overhead_ms"] = median(cpu_overheads) / (micro_batches * stages);
  state.counters["action_ms"] = milliseconds(meter.overheads().per_action);
  state.counters["direct_ms"] = median(direct);
}

void slope(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(1));
  TestBed few({.schedule = schedule_of(state), .stages = stages, .micro_batches = kFew});
  TestBed many({.schedule = schedule_of(state), .stages = stages, .micro_batches = kMany});
  std::vector<double> overheads;
  std::vector<double> cpu_overheads;
  std::vector<double> walls;
  std::vector<double> direct;
  for ([[maybe_unused]] auto _ : state) {
    const StepTimes small = few.measure();
    const StepTimes large = many.measure();
    state.SetIterationTime((small.wall + large.wall) * 1e-3);
    overheads.push_back(large.overhead() - small.overhead());
    cpu_overheads.push_back(large.cpu_overhead() - small.cpu_overhead());
    walls.push_back(large.wall - small.wall);
    direct.push_back(large.direct - small.direct);
  }
  state.SetLabel(std::string(schedule_name(schedule_of(state))));
  constexpr double kMore = kMany - kFew;
  state.counters["overhead_ms_per_micro_batch_and_stage"] = median(overheads) / (kMore * stages);
  state.counters["cpu_overhead_ms"] = median(cpu_overheads) / (kMore * stages);
  state.counters["wall_slope_over_share_ms"] = (median(walls) - median(direct) / stages) / kMore;
  state.counters["direct_slope_ms"] = median(direct) / kMore;
}

BENCHMARK(overhead)
    ->ArgNames({"1f1b", "stages", "M"})
    ->ArgsProduct({{0, 1}, {1, 2}, {4, 16, 64}})
    ->Iterations(40)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(slope)
    ->ArgNames({"1f1b", "stages"})
    ->ArgsProduct({{0, 1}, {1, 2}})
    ->Iterations(60)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) {
  frazil::prepare_numerics();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
