#include "planner/partition/pipe_bd.h"

#include <algorithm>

#include "planner/partition/layer_loads.h"
#include "planner/plan/step_window.h"
#include "profiles/error.h"
#include "sim/collective_cost.h"

namespace frazil {
namespace {

int count_losses(const ModelProfile& profile) {
  return static_cast<int>(std::count_if(profile.layers.begin(), profile.layers.end(),
                                        [](const Layer& layer) { return layer.has_loss; }));
}

std::vector<DeviceId> first_devices(int count, int from = 0) {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int d = 0; d < count; ++d) devices.emplace_back(from + d);
  return devices;
}

// Returns the bytes per sample that cross the cut before a layer.
Bytes crossing(const ModelProfile& profile, const Activity& activity, int layer) {
  Bytes sum;
  for (const Edge& edge : profile.edges) {
    if (activity.is_idle(edge.to)) continue;
    if (edge.from.value < layer && edge.to.value >= layer) sum += edge.bytes(1);
  }
  return sum;
}

// Sums `part` of the layers' loads within each unit.
template <class Part>
auto sum_units(const std::vector<LayerLoad>& loads, const std::vector<int>& units, Part part) {
  std::vector<decltype(part(loads.front()))> sums;
  for (std::size_t u = 0; u + 1 < units.size(); ++u) {
    auto& sum = sums.emplace_back();
    for (int layer = units[u]; layer < units[u + 1]; ++layer) {
      sum += part(loads[static_cast<std::size_t>(layer)]);
    }
  }
  return sums;
}

// Returns the bytes of gradients by unit.
std::vector<Bytes> find_gradients(const ModelProfile& profile, const Activity& activity,
                                  const std::vector<int>& units) {
  std::vector<Bytes> gradients;
  for (std::size_t u = 0; u + 1 < units.size(); ++u) {
    Bytes& sum = gradients.emplace_back();
    for (int layer = units[u]; layer < units[u + 1]; ++layer) {
      const auto l = static_cast<std::size_t>(layer);
      if (activity.layers[l].weight_gradient) sum += profile.layers[l].trainable();
    }
  }
  return gradients;
}

Duration ring_time(Bytes size, int devices, const Cluster& cluster) {
  if (size.count == 0) return Duration{0};
  return collective_cost({CollectiveKind::kRingAllReduce, first_devices(devices), size, {}},
                         cluster)
      .time;
}

void append_layer(Stage& stage, int layer) {
  if (!stage.layers.empty() && stage.layers.back().last.value + 1 == layer) {
    stage.layers.back().last = LayerId{layer};
  } else {
    stage.layers.push_back({LayerId{layer}, LayerId{layer}});
  }
}

}  // namespace

std::vector<int> find_units(const ModelProfile& profile) {
  const auto layers = static_cast<int>(profile.layers.size());
  const bool by_loss = count_losses(profile) > 1;
  std::vector<int> units{0};
  for (int layer = 1; layer < layers; ++layer) {
    const Layer& before = profile.layers[static_cast<std::size_t>(layer) - 1];
    const bool begins = by_loss
                            ? before.has_loss
                            : before.block != profile.layers[static_cast<std::size_t>(layer)].block;
    if (begins) units.push_back(layer);
  }
  const bool has_tail = by_loss && units.size() > 1 && !profile.layers.back().has_loss;
  if (has_tail) units.pop_back();
  units.push_back(layers);
  return units;
}

HybridCosts measure_hybrid(Setting setting, const FreezeMask& mask, int batch_size) {
  const ModelProfile& profile = setting.profile();
  const Cluster& cluster = setting.cluster();
  const Activity activity = find_activity(profile, mask);
  const std::vector<int> units = find_units(profile);
  const std::vector<Bytes> gradients = find_gradients(profile, activity, units);
  HybridCosts costs;
  costs.devices = static_cast<int>(cluster.devices.size());
  costs.blocks = static_cast<int>(units.size()) - 1;
  ENSURE(batch_size >= costs.devices, "a sample for each device");
  for (int group = 1; group <= costs.devices; ++group) {
    const auto loads = find_layer_loads(profile, activity, batch_size / group);
    costs.step.push_back(
        sum_units(loads, units, [](const LayerLoad& load) { return load.time() + load.update; }));
    auto& reduce = costs.reduce.emplace_back();
    for (const Bytes size : gradients) reduce.push_back(ring_time(size, group, cluster));
  }
  const Link link = costs.devices > 1 ? cluster.link(DeviceId{0}, DeviceId{1}) : Link{};
  for (std::size_t u = 1; u + 1 < units.size(); ++u) {
    const Bytes size = crossing(profile, activity, units[u]) * batch_size;
    costs.relay.push_back(size / link.bandwidth + link.latency);
  }
  return costs;
}

HybridCosts measure_hybrid_with_memory(Setting setting, const FreezeMask& mask, int batch_size) {
  const ModelProfile& profile = setting.profile();
  HybridCosts costs = measure_hybrid(setting, mask, batch_size);
  const Activity activity = find_activity(profile, mask);
  const std::vector<int> units = find_units(profile);
  std::vector<std::vector<Bytes>> of_group;  // by group size - 1, then unit
  for (int group = 1; group <= costs.devices; ++group) {
    const auto loads = find_layer_loads(profile, activity, divide_up(batch_size, group));
    of_group.push_back(
        sum_units(loads, units, [](const LayerLoad& load) { return load.state + load.stash; }));
  }
  costs.memory = [of_group](int group, int first, int end) {
    const std::vector<Bytes>& of_unit = of_group[static_cast<std::size_t>(group) - 1];
    Bytes sum;
    for (int u = first; u < end; ++u) sum += of_unit[static_cast<std::size_t>(u)];
    return sum;
  };
  costs.memory_limit = setting.cluster().devices.front().memory_limit;
  for (const Device& device : setting.cluster().devices) {
    costs.memory_limit = std::min(costs.memory_limit, device.memory_limit);
  }
  return costs;
}

Plan make_hybrid_plan(const HybridPlan& hybrid, const ModelProfile& profile, const FreezeMask& mask,
                      int batch_size) {
  const Activity activity = find_activity(profile, mask);
  const std::vector<int> units = find_units(profile);
  const bool relays = count_losses(profile) > 1;
  Pipeline pipeline;
  pipeline.micro_batches = {{MicroBatchId{0}, MicroBatchId{0}}};
  int device = 0;
  for (std::size_t s = 0; s < hybrid.groups.size(); ++s) {
    Stage relayed;
    Stage trained;
    for (int layer = units[static_cast<std::size_t>(hybrid.cuts[s])];
         layer < units[static_cast<std::size_t>(hybrid.cuts[s + 1])]; ++layer) {
      append_layer(relays && !activity.backward(LayerId{layer}) ? relayed : trained, layer);
    }
    for (Stage* stage : {&relayed, &trained}) {
      if (stage->layers.empty()) continue;
      stage->devices = first_devices(hybrid.groups[s], device);
      if (hybrid.groups[s] > 1) stage->axis = DeviceAxis::kSamples;
      pipeline.stages.push_back(*stage);
    }
    device += hybrid.groups[s];
  }
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = batch_size;
  plan.micro_batch_size = batch_size;
  plan.mask = mask;
  plan.pipelines = {pipeline};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe, .in_flight = {}, .chunks = 1};
  plan.reduction = ReductionMode::kFast;
  if (relays) plan.steps_ahead = kDecoupledSteps;
  return plan;
}

}  // namespace frazil
