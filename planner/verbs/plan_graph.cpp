#include "planner/verbs/plan_graph.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "planner/verbs/store_flags.h"
#include "profiles/error.h"
#include "profiles/import/work_graph_json.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFemtoseconds = 1'000'000;  // of the last decimal of a time in ms

// Returns a time in milliseconds with six decimals, rounded.
std::string in_ms(WorkTime time) {
  const std::int64_t count = (time.count() + kFemtoseconds / 2) / kFemtoseconds;
  return fmt::format("{}.{:06} ms", count / kMillion, count % kMillion);
}

// Returns the optimality gap: how far the partition is above the lower bound, in parts per million
// of the bound, rounded up.
std::int64_t gap_ppm(const GraphPartition& partition) {
  __extension__ using Wide = __int128;
  const std::int64_t bound = partition.lower_bound.count();
  if (bound == 0) return partition.is_optimal() ? 0 : kMillion;
  const Wide gap = static_cast<Wide>(partition.load.count() - bound) * kMillion;
  return static_cast<std::int64_t>(divide_up(gap, Wide{bound}));
}

std::string certificate_of(const GraphPartition& partition) {
  if (partition.is_optimal()) return "optimal";
  const std::int64_t gap = gap_ppm(partition);
  return fmt::format("at most {}.{:04} % above the optimum: no split is below {}", gap / 10'000,
                     gap % 10'000, in_ms(partition.lower_bound));
}

}  // namespace

void add_graph_flags(boost::program_options::options_description& flags) {
  flags.add_options()                                                                       //
      ("graph", text_value("FILE"), "a work graph (JSON) to be cut, instead of a profile")  //
      ("devices", text_value("N"),
       "with --graph: number of devices (default: the number in the file)")  //
      ("states", text_value("N"),
       "with --graph: stages that the search may look at (default 50 million); "
       "it then answers with the best found and a lower bound");
}

ExitCode plan_graph_verb(const Flags& values) {
  refuse_together(values, "--graph",
                  {"profile",      "cluster",      "batch",      "micro-batch",
                   "procs",        "mask",         "schedules",  "budget",
                   "no-recompute", "gap",          "cache",      "overlap-reductions",
                   "max-stages",   "max-replicas", "effort",     "clip",
                   "forecast",     "held",         "steps",      "plans-per-mask",
                   "switch-time",  "decide-every", "planner",    "out",
                   "top",          "explain",      "steps-ahead"});
  refuse_store_flags(values, "--forecast");
  const std::string file = required_text(values, "graph");
  WorkGraph graph = read_work_graph(file);
  graph.devices = integer_or(values, "devices", graph.devices, 1, kMostCounted);
  SplitLimits limits;
  limits.states = integer_or(values, "states", static_cast<int>(limits.states), 1, 2'000'000'000);
  const GraphPartition partition = partition_graph(graph, limits);
  print_answer(is_set(values, "json") ? graph_partition_json(graph, partition)
                                      : print_graph_partition(graph, partition, file));
  return ExitCode::kOk;
}

std::string print_graph_partition(const WorkGraph& graph, const GraphPartition& partition,
                                  const std::string& file) {
  std::string text = fmt::format(
      "{}: {} nodes, {} edges, {} parts that must stay whole, {}{} ideals\n"
      "largest load {}, {}\n\n",
      to_one_line(file), graph.nodes.size(), graph.edges.size(), partition.parts,
      partition.has_all_ideals ? "" : "more than the limit of ideals, at most ", partition.ideals,
      in_ms(partition.load), certificate_of(partition));
  text += fmt::format("{:<10} {:>6} {:>18} {:>18} {:>18} {:>12}  {}\n", "on", "nodes", "load",
                      "work", "transfer", "memory", "first node");
  int devices = 0;
  int hosts = 0;
  for (const GraphStage& stage : partition.stages) {
    text += fmt::format(
        "{:<10} {:>6} {:>18} {:>18} {:>18} {:>12}  {}\n",
        stage.is_host ? fmt::format("host {}", hosts++) : fmt::format("device {}", devices++),
        stage.nodes.size(), in_ms(stage.load()), in_ms(stage.work), in_ms(stage.transfer),
        to_text(stage.memory), to_one_line(graph.nodes[stage.nodes.front()].name));
  }
  for (int idle = 0; idle < partition.idle_devices; ++idle) {
    text += fmt::format("{:<10} idle: {}\n", fmt::format("device {}", devices + idle),
                        to_sentence(partition.idle_reason));
  }
  return text;
}

std::string graph_partition_json(const WorkGraph& graph, const GraphPartition& partition) {
  Json stages = Json::array();
  for (const GraphStage& stage : partition.stages) {
    Json ids = Json::array();
    for (const std::size_t node : stage.nodes) ids.push_back(graph.nodes[node].id);
    stages.push_back({{"on", stage.is_host ? "host" : "device"},
                      {"load_fs", stage.load().count()},
                      {"work_fs", stage.work.count()},
                      {"transfer_fs", stage.transfer.count()},
                      {"memory_bytes", stage.memory.count},
                      {"node_ids", std::move(ids)}});
  }
  Json answer = {{"nodes", graph.nodes.size()},
                 {"edges", graph.edges.size()},
                 {"parts", partition.parts},
                 {"devices", graph.devices},
                 {"hosts", graph.hosts},
                 {"load_fs", partition.load.count()},
                 {"lower_bound_fs", partition.lower_bound.count()},
                 {"certificate", partition.is_optimal() ? "optimal" : "lower bound"},
                 {"gap_ppm", gap_ppm(partition)},
                 {"ideals", partition.ideals},
                 {"has_all_ideals", partition.has_all_ideals},
                 {"states", partition.states},
                 {"stages", std::move(stages)},
                 {"idle_devices", partition.idle_devices}};
  if (partition.idle_devices > 0) answer["idle_reason"] = to_sentence(partition.idle_reason);
  return answer.dump(2) + "\n";
}

}  // namespace frazil
