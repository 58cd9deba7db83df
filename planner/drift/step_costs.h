#pragma once
// The compute time of a step by device and by layer: as a profile predicts it for a plan, or as a
// run has measured it. The two stand beside each other entry by entry, and their ratio is what
// drifts (drift_detector.h).

#include <vector>

#include "planner/plan/plan.h"
#include "profiles/setting.h"
#include "profiles/units.h"

namespace frazil {

// The time that a device spends on F, I and W of one layer in a step.
struct LayerTime {
  DeviceId device;
  LayerId layer;
  Duration time{0};
  friend bool operator==(const LayerTime&, const LayerTime&) = default;
};

struct StepCosts {
  // By device: all its compute, updates included, without messages, reductions and waits. 0: the
  // device has nothing to do.
  std::vector<Duration> devices;
  // In the order (device, layer). Empty: not measured in this step.
  std::vector<LayerTime> layers;
  friend bool operator==(const StepCosts&, const StepCosts&) = default;
};

// Predicts the costs of a step of the plan. `devices` is the compute that the simulator puts on
// each device. `layers` adds up what the profile says of each layer over the micro-batches of the
// device, times the device's time_ppm, as far as the layer has an F, an I and a W under the plan's
// mask and cache. Stages whose devices share micro-batches by samples have no layer times. Throws
// InfeasibleError if the simulator refuses the plan.
StepCosts predict_costs(const Plan& plan, Setting setting);

}  // namespace frazil
