// clang-format off
// Measures tasks per second of CPU time of the event engine on the graph of a 1F1B step over 16
// devices.
//   delays    one task for every F and B; a message is a delay
//   messages  every message is a task on a send lane of its sender
//   sharing   as messages, and messages share the devices' outgoing and incoming bandwidth
//   gated     as messages, with memory limits and first-ready send lanes, none of which binds
// run_... prepares once and times the runs; prepare_and_run_... times both, from the task graph on.
// hold_... runs once and reports memory: graph_B is resident bytes per task with the graph alone,
// all_B those at the peak (graph, what is prepared from it, times, what runs), and peak_MB is the
// peak of the process.
// clang-format on

#include <benchmark/benchmark.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "sim/event_engine.h"
#include "tests/bench/support/resident_memory.h"

namespace frazil {
namespace {

constexpr WorkId kForward = 0;
constexpr WorkId kBackward = 1;
constexpr WorkId kHop = 2;

struct Pipeline {
  TaskGraph graph;
  std::vector<Duration> prices;
};

// Builds the devices' lists of F and B in 1F1B order, device after device. Messages between
// neighbours are transfers of 400 ns, or a delay of 400 ns if `with_messages` is false.
class PipelineBuilder {
 public:
  PipelineBuilder(int devices, int micro_batches, bool with_messages)
      : devices_(devices), micro_batches_(micro_batches), with_messages_(with_messages) {}

  Pipeline run() {
    const auto pairs =
        static_cast<std::size_t>(devices_) * static_cast<std::size_t>(micro_batches_);
    made_.graph.reserve(with_messages_ ? 4 * pairs : 2 * pairs, 4 * pairs);
    add_works();
    forward_.resize(pairs);
    backward_.resize(pairs);
    for (int device = 0; device < devices_; ++device) add_device(device);
    for (int device = 0; device < devices_; ++device) add_messages(device);
    for (TaskId task = 0; task < waits_for_.size(); ++task) {
      if (waits_for_[task] == kNoTask) continue;
      made_.graph.add_dependency(task, waits_for_[task], with_messages_ ? kNoWork : kHop);
    }
    return std::move(made_);
  }

 private:
  void add_works() {
    for (int work = 0; work < 3; ++work) made_.graph.add_work(Fixed{});
    made_.prices = {Duration{1000}, Duration{2000}, Duration{400}};
    for (int device = 0; device + 1 < devices_; ++device) {
      made_.graph.add_work(Transfer{DeviceId{device}, DeviceId{device + 1}, Bytes{4000}});
      made_.graph.add_work(Transfer{DeviceId{device + 1}, DeviceId{device}, Bytes{4000}});
      made_.prices.insert(made_.prices.end(), 2, Duration{400});
    }
  }
  std::size_t slot(int device, int micro_batch) const {
    return static_cast<std::size_t>(device) * static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(micro_batch);
  }
  void add_device(int device) {
    const LaneId lane = made_.graph.add_lane(DeviceId{device}, Lane::kCompute);
    const int ahead = std::min(devices_ - device, micro_batches_);
    for (int i = 0; i < ahead; ++i)
      forward_[slot(device, i)] = made_.graph.add_task(lane, kForward);
    for (int i = 0; i < micro_batches_; ++i) {
      backward_[slot(device, i)] = made_.graph.add_task(lane, kBackward);
      if (i + ahead >= micro_batches_) continue;
      forward_[slot(device, i + ahead)] = made_.graph.add_task(lane, kForward);
    }
  }
  void add_messages(int device) {
    LaneId lanes[2] = {};
    if (with_messages_) {
      for (LaneId& lane : lanes) lane = made_.graph.add_lane(DeviceId{device}, Lane::kSend);
    }
    for (int i = 0; i < micro_batches_; ++i) {
      if (device + 1 < devices_) {
        send(lanes[0], forward_[slot(device, i)], forward_[slot(device + 1, i)],
             static_cast<WorkId>(3 + 2 * device));
      }
      if (device > 0) {
        send(lanes[1], backward_[slot(device, i)], backward_[slot(device - 1, i)],
             static_cast<WorkId>(2 + 2 * device));
      }
    }
  }
  void send(LaneId lane, TaskId from, TaskId to, WorkId transfer) {
    waits_for_.resize(made_.graph.size(), kNoTask);
    waits_for_[to] = from;
    if (!with_messages_) return;
    const TaskId message = made_.graph.add_task(lane, transfer);
    waits_for_.push_back(from);
    waits_for_[to] = message;
  }

  int devices_;
  int micro_batches_;
  bool with_messages_;
  Pipeline made_;
  std::vector<TaskId> forward_;
  std::vector<TaskId> backward_;
  std::vector<TaskId> waits_for_;  // by task, each of which waits for at most one
};

Pipeline make_pipeline(const benchmark::State& state, bool with_messages) {
  return PipelineBuilder(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                         with_messages)
      .run();
}

// Makes options with 10 bytes per ns in each direction of each device; a message alone takes all of
// that bandwidth.
EventOptions make_sharing(const TaskGraph& graph) {
  EventOptions options;
  constexpr std::int64_t kBandwidth = 10'000'000'000;
  for (std::size_t device = 0; device < graph.lanes().size(); ++device) {
    options.sharing.add_resource(kBandwidth);
    options.sharing.add_resource(kBandwidth);
  }
  for (WorkId work = 0; work < graph.works().size(); ++work) {
    const auto* const transfer = std::get_if<Transfer>(&graph.works()[work]);
    if (transfer == nullptr) continue;
    const ResourceId ways[] = {static_cast<ResourceId>(2 * transfer->from.index()),
                               static_cast<ResourceId>(2 * transfer->to.index() + 1)};
    options.sharing.draw(work, kBandwidth, ways);
  }
  return options;
}

EventOptions make_gates(const TaskGraph& graph) {
  EventOptions options;
  options.memory_limits = {Bytes{1}};
  options.dispatch.assign(graph.lanes().size(), Dispatch::kInOrder);
  for (LaneId lane = 0; lane < graph.lanes().size(); ++lane) {
    if (graph.lanes()[lane].lane == Lane::kSend) options.dispatch[lane] = Dispatch::kFirstReady;
  }
  return options;
}

enum class EngineRules { kDelays, kMessages, kSharing, kGated };

template <EngineRules rules>
EventOptions make_options(const TaskGraph& graph) {
  if (rules == EngineRules::kSharing) return make_sharing(graph);
  if (rules == EngineRules::kGated) return make_gates(graph);
  return {};
}

template <EngineRules rules, bool with_preparation>
void measure(benchmark::State& state) {
  const Pipeline pipeline = make_pipeline(state, rules != EngineRules::kDelays);
  const EventOptions options = make_options<rules>(pipeline.graph);
  EventGraph prepared = prepare_events(pipeline.graph, options);
  EventTimes times;
  for ([[maybe_unused]] auto _ : state) {
    if (with_preparation) prepared = prepare_events(pipeline.graph, options);
    run_events(prepared, pipeline.prices, times);
    benchmark::DoNotOptimize(latest_end(times));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pipeline.graph.size()));
}

template <EngineRules rules>
void hold(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    forget_peak();
    const std::int64_t before = resident_now();
    const Pipeline pipeline = make_pipeline(state, rules != EngineRules::kDelays);
    const bool forgot = forget_peak();
    const std::int64_t graph = resident_now();
    const EventGraph prepared = prepare_events(pipeline.graph, make_options<rules>(pipeline.graph));
    EventTimes times;
    run_events(prepared, pipeline.prices, times);
    benchmark::DoNotOptimize(latest_end(times));
    const std::int64_t peak = resident_peak();
    const auto tasks = static_cast<double>(pipeline.graph.size());
    state.counters["tasks"] = tasks;
    state.counters["graph_B"] = static_cast<double>(graph - before) / tasks;
    state.counters["all_B"] = static_cast<double>(peak - before) / tasks;
    state.counters["peak_MB"] = static_cast<double>(peak) / 1e6;
    state.SetLabel(forgot ? "" : "peaks are those since the start of the process");
  }
}

void run_delays(benchmark::State& state) { measure<EngineRules::kDelays, false>(state); }
void run_messages(benchmark::State& state) { measure<EngineRules::kMessages, false>(state); }
void run_sharing(benchmark::State& state) { measure<EngineRules::kSharing, false>(state); }
void run_gated(benchmark::State& state) { measure<EngineRules::kGated, false>(state); }
void prepare_and_run_messages(benchmark::State& state) {
  measure<EngineRules::kMessages, true>(state);
}
void hold_messages(benchmark::State& state) { hold<EngineRules::kMessages>(state); }
void hold_sharing(benchmark::State& state) { hold<EngineRules::kSharing>(state); }
void hold_gated(benchmark::State& state) { hold<EngineRules::kGated>(state); }

// The arguments make 10^4, 10^6 and 10^7 tasks.
BENCHMARK(run_delays)->Args({16, 312})->Args({16, 31250})->Args({16, 312500});
BENCHMARK(run_messages)->Args({16, 160})->Args({16, 16000})->Args({16, 160000});
BENCHMARK(run_sharing)->Args({16, 160})->Args({16, 16000})->Args({16, 160000});
BENCHMARK(run_gated)->Args({16, 160})->Args({16, 16000})->Args({16, 160000});
BENCHMARK(prepare_and_run_messages)->Args({16, 160})->Args({16, 16000})->Args({16, 160000});
// The arguments make 2 x 10^6 tasks.
BENCHMARK(hold_messages)->Args({16, 32258})->Iterations(1);
BENCHMARK(hold_sharing)->Args({16, 32258})->Iterations(1);
BENCHMARK(hold_gated)->Args({16, 32258})->Iterations(1);

}  // namespace
}  // namespace frazil

BENCHMARK_MAIN();
