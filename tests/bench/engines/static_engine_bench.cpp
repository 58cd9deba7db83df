// Measures tasks per second of the static engine on the graph of a 1F1B step: every task follows
// its neighbour on the lane and waits for one message from another device.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "sim/static_engine.h"

namespace frazil {
namespace {

struct Shape {
  int devices = 0;
  int micro_batches = 0;

  std::size_t tasks() const {
    return 2 * static_cast<std::size_t>(devices) * static_cast<std::size_t>(micro_batches);
  }
  // Returns the forwards that a device runs before its first backward.
  int warm_up(int device) const { return std::min(devices - device, micro_batches); }

  TaskId forward(int device, int micro_batch) const {
    const int ahead = warm_up(device);
    const int entry = micro_batch < ahead ? micro_batch : 2 * micro_batch - ahead + 1;
    return static_cast<TaskId>(2 * device * micro_batches + entry);
  }
  TaskId backward(int device, int micro_batch) const {
    const int ahead = warm_up(device);
    const bool is_paired = micro_batch < micro_batches - ahead;
    const int entry = is_paired ? ahead + 2 * micro_batch : micro_batches + micro_batch;
    return static_cast<TaskId>(2 * device * micro_batches + entry);
  }
};

constexpr WorkId kForward = 0;
constexpr WorkId kBackward = 1;
constexpr WorkId kHop = 2;

void add_forward(TaskGraph& graph, const Shape& shape, int device, int micro_batch) {
  const TaskId task = graph.add_task(static_cast<LaneId>(device), kForward);
  if (device == 0) {
    return;
  }
  graph.add_dependency(task, shape.forward(device - 1, micro_batch), kHop);
}

void add_backward(TaskGraph& graph, const Shape& shape, int device, int micro_batch) {
  const TaskId task = graph.add_task(static_cast<LaneId>(device), kBackward);
  if (device + 1 == shape.devices) {
    return;
  }
  graph.add_dependency(task, shape.backward(device + 1, micro_batch), kHop);
}

// Makes the graph. It adds device after device, as a schedule lists them, so that half of the
// dependencies point to tasks that come later.
TaskGraph make_one_forward_one_backward(const Shape& shape) {
  TaskGraph graph;
  graph.reserve(shape.tasks(), shape.tasks());
  for (int work = 0; work < 3; ++work) {
    graph.add_work(Fixed{});
  }
  for (int device = 0; device < shape.devices; ++device) {
    graph.add_lane(DeviceId{device}, Lane::kCompute);
    const int ahead = shape.warm_up(device);
    for (int i = 0; i < ahead; ++i) {
      add_forward(graph, shape, device, i);
    }
    for (int i = 0; i < shape.micro_batches; ++i) {
      add_backward(graph, shape, device, i);
      if (i + ahead < shape.micro_batches) {
        add_forward(graph, shape, device, i + ahead);
      }
    }
  }
  return graph;
}

constexpr Duration kPrices[] = {Duration{1000}, Duration{2000}, Duration{10}};

void count_tasks(benchmark::State& state, const Shape& shape) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(shape.tasks()));
}

void evaluate_again(benchmark::State& state) {
  const Shape shape{static_cast<int>(state.range(0)), static_cast<int>(state.range(1))};
  const CompiledGraph compiled = compile(make_one_forward_one_backward(shape));
  SweepTimes times;
  for ([[maybe_unused]] auto _ : state) {
    evaluate(compiled, kPrices, times);
    benchmark::DoNotOptimize(latest_end(times));
  }
  count_tasks(state, shape);
}

void build_compile_and_evaluate(benchmark::State& state) {
  const Shape shape{static_cast<int>(state.range(0)), static_cast<int>(state.range(1))};
  for ([[maybe_unused]] auto _ : state) {
    const TaskGraph graph = make_one_forward_one_backward(shape);
    const CompiledGraph compiled = compile(graph);
    SweepTimes times;
    evaluate(compiled, kPrices, times);
    benchmark::DoNotOptimize(latest_end(times));
  }
  count_tasks(state, shape);
}

BENCHMARK(evaluate_again)->Args({4, 64})->Args({32, 1024})->Args({128, 4096});
BENCHMARK(build_compile_and_evaluate)->Args({4, 64})->Args({32, 1024})->Args({128, 4096});

}  // namespace
}  // namespace frazil

BENCHMARK_MAIN();
