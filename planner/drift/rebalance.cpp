#include "planner/drift/rebalance.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "planner/named/dynmo.h"
#include "planner/partition/layer_loads.h"
#include "planner/partition/partition.h"
#include "planner/plan/activity.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::vector<int> cuts_of(const Pipeline& pipeline) {
  std::vector<int> cuts;
  for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
    cuts.push_back(pipeline.stages[s].layers.front().first.value);
  }
  return cuts;
}

void put_cuts(Pipeline& pipeline, const std::vector<int>& cuts, int layers) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const int first = s == 0 ? 0 : cuts[s - 1];
    const int end = s < cuts.size() ? cuts[s] : layers;
    pipeline.stages[s].layers = {{LayerId{first}, LayerId{end - 1}}};
  }
}

// Returns the time of each layer for one micro-batch on a device of the profiled kind.
std::vector<Duration> find_times(const Plan& plan, const ModelProfile& profile) {
  const Activity activity = find_activity(profile, plan);
  std::vector<Duration> times;
  for (const LayerLoad& load : find_layer_loads(profile, activity, plan.micro_batch_size)) {
    const bool is_cached = activity.is_cached(LayerId{times.size()});
    times.push_back(is_cached ? kNoTime : load.time());
  }
  return times;
}

std::vector<std::int64_t> speeds_of(const Pipeline& pipeline, const Cluster& cluster) {
  std::vector<std::int64_t> time_ppm;
  for (const Stage& stage : pipeline.stages) {
    time_ppm.push_back(cluster.devices.at(stage.devices.front().index()).time_ppm);
  }
  return time_ppm;
}

using Cut = std::function<std::vector<int>(const Pipeline&, const std::vector<Duration>& times,
                                           const std::vector<std::int64_t>& time_ppm)>;

Plan cut_anew(Plan plan, Setting setting, const Cut& cut) {
  ENSURE(can_rebalance(plan), "a plan whose pipelines can be cut anew");
  const std::vector<Duration> times = find_times(plan, setting.profile());
  for (Pipeline& pipeline : plan.pipelines) {
    if (pipeline.stages.size() < 2) continue;
    put_cuts(pipeline, cut(pipeline, times, speeds_of(pipeline, setting.cluster())),
             static_cast<int>(times.size()));
  }
  plan.provenance.clear();
  return plan;
}

// The loads of stages, on their devices or on others.
class StageLoads {
 public:
  StageLoads(const std::vector<Duration>& times, const Cluster& cluster)
      : times_(times), cluster_(cluster) {}

  Duration load(const Stage& stage, DeviceId device) const {
    Duration sum{0};
    for_each_layer(stage, [&](LayerId layer) { sum += times_[layer.index()]; });
    return scale_ppm(sum, cluster_.devices.at(device.index()).time_ppm);
  }
  Duration slowest(const Pipeline& pipeline) const {
    Duration most{0};
    for (const Stage& stage : pipeline.stages) {
      most = std::max(most, load(stage, stage.devices.front()));
    }
    return most;
  }
  // Returns both stages as one on the device that takes less time for them; of two that take as
  // long, on the first.
  Stage merge(const Stage& first, const Stage& second) const {
    Stage merged = first;
    merged.layers = {{first.layers.front().first, second.layers.front().last}};
    if (load(merged, second.devices.front()) < load(merged, first.devices.front())) {
      merged.devices = second.devices;
    }
    return merged;
  }

 private:
  const std::vector<Duration>& times_;
  const Cluster& cluster_;
};

void pack(Pipeline& pipeline, const StageLoads& loads) {
  const Duration slowest = loads.slowest(pipeline);
  std::vector<Stage> packed;
  for (const Stage& stage : pipeline.stages) {
    if (!packed.empty() && packed.back().memory == stage.memory) {
      const Stage merged = loads.merge(packed.back(), stage);
      if (loads.load(merged, merged.devices.front()) <= slowest) {
        packed.back() = merged;
        continue;
      }
    }
    packed.push_back(stage);
  }
  pipeline.stages = std::move(packed);
}

}  // namespace

bool can_rebalance(const Plan& plan) {
  if (!std::holds_alternative<NamedSchedule>(plan.schedule)) return false;
  std::set<DeviceId> used;
  bool has_stages = false;
  for (const Pipeline& pipeline : plan.pipelines) {
    has_stages = has_stages || pipeline.stages.size() > 1;
    LayerId next{0};
    for (const Stage& stage : pipeline.stages) {
      if (stage.devices.size() != 1 || !used.insert(stage.devices.front()).second) return false;
      if (stage.layers.size() != 1 || stage.layers.front().first != next) return false;
      next = LayerId{stage.layers.front().last.value + 1};
    }
  }
  return has_stages;
}

Plan rebalance_by_partition(const Plan& plan, Setting setting) {
  return cut_anew(plan, setting,
                  [](const Pipeline& pipeline, const std::vector<Duration>& times,
                     const std::vector<std::int64_t>& time_ppm) {
                    ChainCosts chain{.layer = times,
                                     .boundary = std::vector<Duration>(times.size() - 1),
                                     .time_ppm = time_ppm,
                                     .memory = {},
                                     .memory_limit = {}};
                    const auto best =
                        partition_into(chain, static_cast<int>(pipeline.stages.size()));
                    ENSURE(best.has_value(), "a chain that is cut can be cut");
                    std::vector<int> cuts;
                    for (const LayerId cut : best->cuts) cuts.push_back(cut.value);
                    return cuts;
                  });
}

Plan rebalance_by_packing(const Plan& plan, Setting setting) {
  Plan packed = rebalance_by_partition(plan, setting);
  const std::vector<Duration> times = find_times(packed, setting.profile());
  const StageLoads loads(times, setting.cluster());
  for (Pipeline& pipeline : packed.pipelines) pack(pipeline, loads);
  return packed;
}

Plan rebalance_by_diffusion(const Plan& plan, Setting setting) {
  return cut_anew(plan, setting,
                  [](const Pipeline& pipeline, const std::vector<Duration>& times,
                     const std::vector<std::int64_t>& time_ppm) {
                    const ChainLoads chain{.time = times,
                                           .memory = std::vector<Bytes>(times.size()),
                                           .memory_limit = {},
                                           .time_ppm = time_ppm};
                    return balance_by_diffusion(chain, cuts_of(pipeline), /*rounds=*/0);
                  });
}

}  // namespace frazil
