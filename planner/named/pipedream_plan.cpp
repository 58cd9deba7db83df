#include "planner/named/pipedream_plan.h"

#include <algorithm>

#include "planner/named/layer_loads.h"
#include "planner/named/pipedream.h"
#include "profiles/error.h"

namespace frazil {
namespace {

OperatorGraph make_operators(const ModelProfile& profile, const FreezeMask& mask, int size) {
  OperatorGraph graph;
  const auto loads = find_layer_loads(profile, find_activity(profile, mask), size);
  for (std::size_t l = 0; l < loads.size(); ++l) {
    graph.operators.push_back({loads[l].time(), loads[l].output, profile.layers[l].parameters});
  }
  for (const Edge& edge : profile.edges) {
    const std::pair pair(edge.from.value, edge.to.value);
    // Edges are sorted, so two edges of different kinds between the same layers are neighbours.
    if (graph.edges.empty() || graph.edges.back() != pair) graph.edges.push_back(pair);
  }
  return graph;
}

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

Stage make_stage(const std::vector<int>& layers) {
  Stage stage;
  for (const int layer : layers) {
    if (!stage.layers.empty() && stage.layers.back().last.value + 1 == layer) {
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

Plan make_pipedream_plan(Setting setting, const FreezeMask& mask, int batch_size,
                         int micro_batch_size) {
  const auto partition =
      partition_for_pipedream(make_operators(setting.profile(), mask, micro_batch_size),
                              find_levels(setting.cluster()), /*straight=*/false);
  ENSURE(partition.has_value(), "one stage on all machines is always there");
  Plan plan;
  plan.model_hash = model_hash(setting.profile());
  plan.batch_size = batch_size;
  plan.micro_batch_size = micro_batch_size;
  plan.mask = mask;
  plan.schedule =
      NamedSchedule{.kind = ScheduleKind::kOneForwardOneBackward, .in_flight = {}, .chunks = 1};
  Pipeline pipeline;
  pipeline.micro_batches = {{MicroBatchId{0}, MicroBatchId{plan.micro_batches() - 1}}};
  Placer placer(find_devices_per_host(setting.cluster()));
  for (const PipeDreamStage& partitioned : partition->stages) {
    Stage stage = make_stage(partitioned.operators);
    placer.place(partitioned, stage);
    if (!stage.layers.empty()) pipeline.stages.push_back(stage);
  }
  plan.pipelines = {pipeline};
  return plan;
}

}  // namespace frazil
