#include "planner/drift/step_costs.h"

#include <map>
#include <utility>

#include "planner/partition/layer_loads.h"
#include "planner/plan/activity.h"
#include "planner/plan/step_window.h"
#include "planner/prediction/simulate_plan.h"

namespace frazil {
namespace {

using ByDeviceAndLayer = std::map<std::pair<DeviceId, LayerId>, Duration>;

// Adds one micro-batch of a stage.
void add_micro_batch(const Stage& stage, DeviceId device, const std::vector<LayerLoad>& loads,
                     const Activity& activity, ByDeviceAndLayer& times) {
  for_each_layer(stage, [&](LayerId layer) {
    const LayerLoad& load = loads[layer.index()];
    Duration time = activity.is_cached(layer) ? kNoTime : load.time();
    // Activation checkpointing runs the forward of what has a backward again.
    if (stage.memory == MemoryPolicy::kRecompute && activity.backward(layer)) time += load.forward;
    if (time > kNoTime) times[{device, layer}] += time;
  });
}

ByDeviceAndLayer find_layer_times(const Plan& plan, const ModelProfile& profile) {
  const Activity activity = find_activity(profile, plan);
  std::map<int, std::vector<LayerLoad>> loads;  // by samples of a micro-batch
  ByDeviceAndLayer times;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Stage& stage = pipeline.stages[s];
      if (stage.devices.size() > 1 && stage.axis != DeviceAxis::kData) continue;
      for (const MicroBatches& own : pipeline.micro_batches) {
        for (MicroBatchId m = own.first; m <= own.last; ++m.value) {
          const int samples = samples_in(plan, m);
          auto found = loads.find(samples);
          if (found == loads.end()) {
            found = loads.emplace(samples, find_layer_loads(profile, activity, samples)).first;
          }
          add_micro_batch(stage, device_of(pipeline, StageId{s}, m), found->second, activity,
                          times);
        }
      }
    }
  }
  return times;
}

}  // namespace

StepCosts predict_costs(const Plan& plan, Setting setting) {
  const std::vector<Device>& devices = setting.cluster().devices;
  const Timeline step = simulate_plan(in_step(plan), setting).timeline;
  StepCosts costs;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    costs.devices.push_back(busy(step, DeviceId{d}));
  }
  for (const auto& [where, time] : find_layer_times(plan, setting.profile())) {
    const auto& [device, layer] = where;
    costs.layers.push_back({device, layer, scale_ppm(time, devices[device.index()].time_ppm)});
  }
  return costs;
}

}  // namespace frazil
