#include "planner/named/pipedream_plan.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/named/pipedream.h"
#include "planner/partition/layer_loads.h"
#include "planner/partition/replica_levels.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Tells whether an imported layer, "node8 __getitem__(0)" or without the node, only picks an item.
bool picks_an_item(const Layer& layer) {
  const std::string_view name = layer.name;
  return name.substr(name.find(' ') + 1).starts_with("__getitem__");
}

// The layers that PipeDream's optimizer sees, and the others.
class Operators {
 public:
  explicit Operators(const ModelProfile& profile)
      : layers_(profile.layers.size()), operator_of_(profile.layers.size(), kLeftOut) {
    std::vector<bool> is_read(layers_);
    for (const Edge& edge : profile.edges) is_read[edge.from.index()] = true;
    for (std::size_t l = 0; l < layers_; ++l) {
      if (picks_an_item(profile.layers[l]) && !is_read[l]) continue;
      keep(l);
    }
    if (layer_of_.empty()) {
      for (std::size_t l = 0; l < layers_; ++l) keep(l);
    }
  }

  int left_out() const { return static_cast<int>(layers_ - layer_of_.size()); }

  OperatorGraph make_graph(const ModelProfile& profile, const FreezeMask& mask, int size) const {
    OperatorGraph graph;
    const auto loads = find_layer_loads(profile, find_activity(profile, mask), size);
    for (const std::size_t l : layer_of_) {
      graph.operators.push_back({loads[l].time(), loads[l].output, profile.layers[l].trainable()});
    }
    for (const Edge& edge : profile.edges) {
      const std::pair pair(operator_of_[edge.from.index()], operator_of_[edge.to.index()]);
      if (pair.first == kLeftOut || pair.second == kLeftOut) continue;
      // Edges are sorted, so two edges of different kinds between the same layers are neighbours.
      if (graph.edges.empty() || graph.edges.back() != pair) graph.edges.push_back(pair);
    }
    return graph;
  }

  // Returns the layers of each stage, ascending. A layer that was left out goes with the last layer
  // that it reads, or to the last stage if it reads none.
  std::vector<std::vector<LayerId>> list_layers(const ModelProfile& profile,
                                                const PipeDreamPartition& partition) const {
    const std::size_t stages = partition.stages.size();
    std::vector<std::size_t> stage_of(layers_, stages - 1);
    for (std::size_t s = 0; s < stages; ++s) {
      for (const int op : partition.stages[s].operators) {
        stage_of[layer_of_[static_cast<std::size_t>(op)]] = s;
      }
    }
    std::vector<bool> is_first_edge(layers_, true);
    for (const Edge& edge : profile.edges) {
      const std::size_t to = edge.to.index();
      if (operator_of_[to] != kLeftOut) continue;
      const std::size_t from = stage_of[edge.from.index()];
      stage_of[to] = is_first_edge[to] ? from : std::max(stage_of[to], from);
      is_first_edge[to] = false;
    }
    std::vector<std::vector<LayerId>> listed(stages);
    for (std::size_t l = 0; l < layers_; ++l) listed[stage_of[l]].emplace_back(l);
    return listed;
  }

 private:
  static constexpr int kLeftOut = -1;

  void keep(std::size_t layer) {
    operator_of_[layer] = static_cast<int>(layer_of_.size());
    layer_of_.push_back(layer);
  }

  std::size_t layers_;
  std::vector<int> operator_of_;       // by layer, or kLeftOut
  std::vector<std::size_t> layer_of_;  // by operator
};

std::vector<PipeDreamLevel> find_levels(const Cluster& cluster) {
  std::vector<PipeDreamLevel> levels;
  for (const ReplicaLevel& level : find_replica_levels(cluster)) {
    levels.push_back({level.machines, level.bandwidth});
  }
  return levels;
}

}  // namespace

PipeDreamPlan make_pipedream_plan(Setting setting, const FreezeMask& mask, int batch_size,
                                  int micro_batch_size) {
  const ModelProfile& profile = setting.profile();
  const Operators operators(profile);
  const auto partition =
      partition_for_pipedream(operators.make_graph(profile, mask, micro_batch_size),
                              find_levels(setting.cluster()), /*straight=*/false);
  ENSURE(partition.has_value(), "one stage on all machines is always there");
  PipeDreamPlan answer;
  answer.bottleneck = partition->bottleneck;
  answer.left_out = operators.left_out();
  Plan& plan = answer.plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = batch_size;
  plan.micro_batch_size = micro_batch_size;
  plan.mask = mask;
  plan.schedule =
      NamedSchedule{.kind = ScheduleKind::kOneForwardOneBackward, .in_flight = {}, .chunks = 1};
  Pipeline pipeline;
  pipeline.micro_batches = {{MicroBatchId{0}, MicroBatchId{plan.micro_batches() - 1}}};
  std::vector<std::vector<int>> replicas;
  for (const PipeDreamStage& stage : partition->stages) replicas.push_back(stage.machines);
  const auto devices = place_replicas(replicas, find_devices_per_host(setting.cluster()));
  const auto layers = operators.list_layers(profile, *partition);
  for (std::size_t s = 0; s < layers.size(); ++s) {
    if (layers[s].empty()) continue;
    pipeline.stages.push_back(make_replicated_stage(layers[s], devices[s]));
  }
  plan.pipelines = {pipeline};
  return answer;
}

}  // namespace frazil
