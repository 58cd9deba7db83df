// Measures the time of exact partitions of layer graphs: PipeDream's formula on its public profiles
// (its own optimizer takes 5.05 CPU s for resnet50 on 16 machines), the public work graphs, and
// generated graphs of several hundred nodes with branches. Public files that are not at hand are
// left out.

#include <benchmark/benchmark.h>

#include <filesystem>
#include <random>
#include <string>

#include "planner/partition/partition_graph.h"
#include "planner/partition/replicated_partition.h"
#include "profiles/import/pipedream_graph.h"
#include "profiles/import/work_graph_json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

std::filesystem::path public_data(const std::string& name) {
  return std::filesystem::path(FRAZIL_SOURCE_FOLDER) / ".." / "shared" / "data" / name;
}

// Partitions a public profile; the time includes reading the file and the import.
void partition_replicated_on_16(benchmark::State& state, const std::string& model) {
  const std::filesystem::path file = public_data("pipedream/" + model + ".graph.txt");
  ReplicaOptions options;
  options.levels = {{16, BytesPerSecond{1'000'000'000}}};
  ReplicatedPartition partition;
  for (auto _ : state) {
    const ImportedProfile imported = parse_pipedream_graph(read_text_file(file), model, {});
    partition = partition_replicated(imported.profile, options);
  }
  state.counters["time_ns"] = static_cast<double>(partition.time.count());
  state.counters["ideals"] = static_cast<double>(partition.ideals);
}

void report(benchmark::State& state, const GraphPartition& partition) {
  state.counters["load_ms"] = static_cast<double>(partition.load.count()) / 1e12;
  state.counters["gap_percent"] = 100 * (static_cast<double>(partition.load.count()) /
                                             static_cast<double>(partition.lower_bound.count()) -
                                         1);
  state.counters["ideals"] = static_cast<double>(partition.ideals);
  state.counters["states"] = static_cast<double>(partition.states);
}

void partition_work_graph(benchmark::State& state, const std::string& name) {
  const WorkGraph graph =
      read_work_graph(public_data("dnn-partitioning/throughput-inputs/" + name));
  GraphPartition partition;
  for (auto _ : state) partition = partition_graph(graph, {});
  report(state, partition);
}

// Makes modules of `width` branches between two joints, as in image models of the Inception kind.
WorkGraph make_modules(int modules, int width, int length, int devices) {
  std::mt19937_64 random(1);
  WorkGraph graph;
  graph.devices = devices;
  graph.device_memory = Bytes{std::int64_t{1} << 40};
  const auto add = [&] {
    WorkNode node;
    node.id = static_cast<std::int64_t>(graph.nodes.size());
    node.load = WorkTime{static_cast<std::int64_t>(random() % 1'000'000)} * 1'000'000;
    node.memory = Bytes{1 << 20};
    graph.nodes.push_back(node);
    return graph.nodes.size() - 1;
  };
  std::vector<WorkTime> transfers;
  const auto link = [&](std::size_t from, std::size_t to) {
    while (transfers.size() <= from) {
      transfers.push_back(WorkTime{static_cast<std::int64_t>(random() % 30'000)} * 1'000'000);
    }
    graph.edges.push_back({from, to, transfers[from]});
  };
  std::size_t joint = add();
  for (int module = 0; module < modules; ++module) {
    std::vector<std::size_t> ends;
    for (int branch = 0; branch < width; ++branch) {
      std::size_t last = joint;
      for (int i = 0; i < length - branch % 2; ++i) {
        const std::size_t next = add();
        link(last, next);
        last = next;
      }
      ends.push_back(last);
    }
    joint = add();
    for (const std::size_t end : ends) link(end, joint);
  }
  return graph;
}

// Makes layers of `width` nodes; one to three nodes of the next layer read each node.
WorkGraph make_mesh(int layers, int width, int devices) {
  std::mt19937_64 random(2);
  WorkGraph graph;
  graph.devices = devices;
  graph.device_memory = Bytes{std::int64_t{1} << 40};
  for (int n = 0; n < layers * width; ++n) {
    WorkNode node;
    node.id = n;
    node.load = WorkTime{static_cast<std::int64_t>(random() % 1'000'000)} * 1'000'000;
    graph.nodes.push_back(node);
  }
  for (int n = 0; n + width < layers * width; ++n) {
    const WorkTime transfer{static_cast<std::int64_t>(random() % 3'000) * 1'000'000};
    const int row = (n / width + 1) * width;
    const int readers = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < readers; ++i) {
      const int to = row + (n % width + i) % width;
      graph.edges.push_back({static_cast<std::size_t>(n), static_cast<std::size_t>(to), transfer});
    }
  }
  return graph;
}

void partition_generated(benchmark::State& state, const WorkGraph& graph) {
  GraphPartition partition;
  for (auto _ : state) partition = partition_graph(graph, {});
  state.counters["nodes"] = static_cast<double>(graph.nodes.size());
  report(state, partition);
}

void register_all() {
  for (const std::string model : {"vgg16", "alexnet", "resnet50", "gnmt"}) {
    if (!std::filesystem::exists(public_data("pipedream/" + model + ".graph.txt"))) continue;
    benchmark::RegisterBenchmark(("replicated_on_16/" + model).c_str(), partition_replicated_on_16,
                                 model)
        ->Unit(benchmark::kMillisecond);
  }
  for (const std::string name :
       {"LayerGraphs/bert24_training.json", "LayerGraphs/resnet50_training.json",
        "OperatorGraphs/bert_l-3_inference.json"}) {
    if (!std::filesystem::exists(public_data("dnn-partitioning/throughput-inputs/" + name))) {
      continue;
    }
    benchmark::RegisterBenchmark(("work_graph/" + name).c_str(), partition_work_graph, name)
        ->Unit(benchmark::kMillisecond);
  }
  for (const int devices : {4, 8}) {
    const std::string on = "/" + std::to_string(devices);
    benchmark::RegisterBenchmark(("modules_of_4_branches" + on).c_str(), partition_generated,
                                 make_modules(20, 4, 4, devices))
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
    benchmark::RegisterBenchmark(("modules_of_8_branches" + on).c_str(), partition_generated,
                                 make_modules(12, 8, 4, devices))
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
    benchmark::RegisterBenchmark(("mesh_of_10" + on).c_str(), partition_generated,
                                 make_mesh(30, 10, devices))
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  frazil::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
