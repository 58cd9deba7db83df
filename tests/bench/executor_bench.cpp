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
//   action_ms (F and B spans - their layers' times) per action, of further steps that time layers;
//             two actions make a micro-batch and stage. Excludes handling inside a layer's time.
//   wall_slope_over_share_ms
//             growth of the step's wall time per micro-batch less growth of direct / stages: what a
//             user sees, waiting and uneven stages included. It can be compared with the same
//             figure of other runtimes.

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "exec/layer_times.h"
#include "exec/numerics.h"
#include "exec/optimizer.h"
#include "tests/bench/two_stage_run.h"

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

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Training by a plain loop.
class DirectTraining {
 public:
  DirectTraining(ModelSpec model, OptimizerConfig optimizer)
      : model_(std::move(model)), optimizer_(optimizer), sums_(model_.layers.size()) {
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      states_.push_back(make_initial_state(model_, LayerId{l}, kSeed));
    }
  }

  // Returns the loss of the step.
  double step(const std::vector<Samples>& micro_batches, bool all_forwards_first) {
    double loss = 0;
    std::vector<SavedMicroBatch> saved(micro_batches.size());
    for (std::size_t m = 0; m < micro_batches.size(); ++m) {
      loss += forward(micro_batches[m], micro_batches.size(), saved[m]);
      if (!all_forwards_first) backward(saved[m]);
    }
    if (all_forwards_first) {
      for (SavedMicroBatch& one : saved) backward(one);
    }
    for (std::size_t l = 0; l < states_.size(); ++l) {
      update_layer(states_[l], sums_[l], optimizer_, kLearningRate);
      sums_[l].clear();
    }
    return loss;
  }

 private:
  struct SavedLayer {
    at::Tensor input;
    at::Tensor output;
  };
  using SavedMicroBatch = std::vector<SavedLayer>;

  double forward(const Samples& samples, std::size_t parts, SavedMicroBatch& saved) {
    saved.reserve(states_.size());
    at::Tensor x = samples.images;
    for (std::size_t l = 0; l < states_.size(); ++l) {
      const at::Tensor input = x.detach().set_requires_grad(l > 0);
      x = forward_layer(model_, LayerId{l}, states_[l].parameters, input, {}, /*training=*/true);
      saved.push_back({input, x});
    }
    saved.back().output = scaled_loss(x, samples.labels, 1.0 / static_cast<double>(parts));
    return saved.back().output.item<double>();
  }

  void backward(SavedMicroBatch& saved) {
    at::Tensor gradient;
    for (std::size_t l = states_.size(); l-- > 0;) {
      Tensors leaves;
      if (l > 0) leaves.push_back(saved[l].input);
      leaves.insert(leaves.end(), states_[l].parameters.begin(), states_[l].parameters.end());
      Tensors gradients = torch::autograd::grad({saved[l].output}, leaves, {gradient});
      if (l > 0) {
        gradient = gradients.front();
        gradients.erase(gradients.begin());
      }
      add(sums_[l], std::move(gradients));
      saved.pop_back();
    }
  }

  static void add(Tensors& sum, Tensors gradients) {
    const c10::NoGradGuard no_grad;
    if (sum.empty()) {
      sum = std::move(gradients);
      return;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i].add_(gradients[i]);
  }

  ModelSpec model_;
  OptimizerConfig optimizer_;
  std::vector<LayerState> states_;
  std::vector<Tensors> sums_;  // by layer
};

struct StepTimes {
  double wall = 0;  // all in milliseconds
  double busy = 0;
  double direct = 0;

  double overhead() const { return busy - direct; }
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
        direct_(make_vit(dispatch_model()), plain_sgd()),
        direct_thread_(1) {
    run_.switch_to(make_bench_plan(run_.model(), run_.structure(), shape));
    for (int i = 0; i < 3; ++i) measure();
  }

  StepTimes measure() {
    const StepResult result = run_.step(step_++, kLearningRate, batch_, /*record=*/true);
    Duration direct{0};
    double direct_loss = 0;
    direct_thread_.run([&](DeviceId) {
      const SteadyTime start = std::chrono::steady_clock::now();
      direct_loss = direct_.step(batch_, shape_.schedule == ScheduleKind::kGpipe);
      direct = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
    });
    same_work_ = same_work_ && std::abs(result.loss - direct_loss) < 1e-3;
    return {milliseconds(result.wall), milliseconds(busy_time(result)), milliseconds(direct)};
  }

  // One more step with layers timed. The direct twin takes it too, so that both stay at equal
  // weights.
  void measure_actions(OverheadMeter& meter) {
    run_.measure({.layers = true});
    const StepResult result = run_.step(step_++, kLearningRate, batch_, /*record=*/true);
    meter.add_step(result.wall, result.spans, run_.take_layer_samples());
    run_.measure({});
    direct_thread_.run(
        [&](DeviceId) { direct_.step(batch_, shape_.schedule == ScheduleKind::kGpipe); });
  }

  // Whether both sides found the same losses.
  bool same_work() const { return same_work_; }

 private:
  BenchPlan shape_;
  std::vector<Samples> batch_;
  Run run_;
  DirectTraining direct_;
  Workers direct_thread_;  // on the same core as device 0
  Step step_ = 0;
  bool same_work_ = true;
};

ScheduleKind schedule_of(const benchmark::State& state) {
  return state.range(0) == 0 ? ScheduleKind::kGpipe : ScheduleKind::kOneForwardOneBackward;
}

void overhead(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(1));
  const int micro_batches = static_cast<int>(state.range(2));
  TestBed bed({.schedule = schedule_of(state), .stages = stages, .micro_batches = micro_batches});
  std::vector<double> overheads;
  std::vector<double> direct;
  OverheadMeter meter;
  for ([[maybe_unused]] auto _ : state) {
    const StepTimes times = bed.measure();
    state.SetIterationTime(times.wall * 1e-3);
    overheads.push_back(times.overhead());
    direct.push_back(times.direct);
    bed.measure_actions(meter);
  }
  if (!bed.same_work()) state.SkipWithError("the direct loop found other losses");
  state.SetLabel(std::string(schedule_name(schedule_of(state))));
  state.counters["overhead_ms_per_micro_batch_and_stage"] =
      median(overheads) / (micro_batches * stages);
  state.counters["action_ms"] = milliseconds(meter.overheads().per_action);
  state.counters["direct_ms"] = median(direct);
}

void slope(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(1));
  TestBed few({.schedule = schedule_of(state), .stages = stages, .micro_batches = kFew});
  TestBed many({.schedule = schedule_of(state), .stages = stages, .micro_batches = kMany});
  std::vector<double> overheads;
  std::vector<double> walls;
  std::vector<double> direct;
  for ([[maybe_unused]] auto _ : state) {
    const StepTimes small = few.measure();
    const StepTimes large = many.measure();
    state.SetIterationTime((small.wall + large.wall) * 1e-3);
    overheads.push_back(large.overhead() - small.overhead());
    walls.push_back(large.wall - small.wall);
    direct.push_back(large.direct - small.direct);
  }
  if (!few.same_work() || !many.same_work()) {
    state.SkipWithError("the direct loop found other losses");
  }
  state.SetLabel(std::string(schedule_name(schedule_of(state))));
  constexpr double kMore = kMany - kFew;
  state.counters["overhead_ms_per_micro_batch_and_stage"] = median(overheads) / (kMore * stages);
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
