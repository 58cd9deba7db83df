#include "planner/named/pipedream_plan.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/named/layer_loads.h"
#include "planner/named/pipedream.h"
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
      graph.operators.push_back({loads[l].time(), loads[l].output, profile.layers[l].parameters});
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
  std::vector<std::vector<std::size_t>> list_layers(const ModelProfile& profile,
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
    std::vector<std::vector<std::size_t>> listed(stages);
    for (std::size_t l = 0; l < layers_; ++l) listed[stage_of[l]].push_back(l);
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

// Returns the devices per host where hosts have equally many (two or more) and devices are numbered
// host by host; else the number of all devices.
int find_devices_per_host(const Cluster& cluster) {
  const auto devices = static_cast<int>(cluster.devices.size());
  const auto on_first = static_cast<int>(std::count_if(
      cluster.devices.begin(), cluster.devices.end(),
      [&](const Device& device) { return device.host == cluster.devices.front().host; }));
  if (on_first == 1 || devices % on_first != 0) return devices;
  for (int d = 0; d < devices; ++d) {
    const HostId first = cluster.devices[static_cast<std::size_t>(d - d % on_first)].host;
    const bool begins = d % on_first == 0 && d > 0;
    const HostId host = cluster.devices[static_cast<std::size_t>(d)].host;
    if (host != first) return devices;
    if (begins && host == cluster.devices[static_cast<std::size_t>(d) - 1].host) return devices;
  }
  return on_first;
}

std::vector<PipeDreamLevel> find_levels(const Cluster& cluster) {
  const auto devices = static_cast<int>(cluster.devices.size());
  const int per_host = find_devices_per_host(cluster);
  const auto bandwidth = [&](int to) {
    return to < devices ? cluster.link(DeviceId{0}, DeviceId{to}).bandwidth : BytesPerSecond{};
  };
  if (per_host == devices) return {{devices, bandwidth(1)}};
  return {{per_host, bandwidth(1)}, {devices / per_host, bandwidth(per_host)}};
}

Stage make_stage(const std::vector<std::size_t>& layers) {
  Stage stage;
  for (const std::size_t layer : layers) {
    if (!stage.layers.empty() && stage.layers.back().last.index() + 1 == layer) {
      stage.layers.back().last = LayerId{layer};
    } else {
      stage.layers.push_back({LayerId{layer}, LayerId{layer}});
    }
  }
  return stage;
}

// Gives stages their devices: one stage after another within a host, and the same devices on each
// host over which an outer stage is replicated. Micro-batch m then runs on host m mod hosts.
class Placer {
 public:
  explicit Placer(int per_host) : per_host_(per_host) {}

  void place(const PipeDreamStage& partitioned, Stage& stage) {
    const int inner = partitioned.machines.front();
    const int hosts = partitioned.machines.size() > 1 ? partitioned.machines.back() : 1;
    for (int i = 0; i < inner; ++i) {
      for (int h = 0; h < hosts; ++h) {
        stage.devices.emplace_back((host_ + h) * per_host_ + used_ + i);
      }
    }
    used_ += inner;
    if (used_ < per_host_) return;
    used_ = 0;
    host_ += hosts;
  }

 private:
  int per_host_;
  int host_ = 0;  // first host of the outer stage
  int used_ = 0;  // devices used on each host of the outer stage
};

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
  Placer placer(find_devices_per_host(setting.cluster()));
  const auto layers = operators.list_layers(profile, *partition);
  for (std::size_t s = 0; s < layers.size(); ++s) {
    Stage stage = make_stage(layers[s]);
    placer.place(partition->stages[s], stage);
    if (!stage.layers.empty()) pipeline.stages.push_back(stage);
  }
  plan.pipelines = {pipeline};
  return answer;
}

}  // namespace frazil
