#pragma once
// How training steps end: all devices add their gradients, and over processes a commit round
// follows; and how much later than the first device the last one begins. All is measured in real
// steps, because gradients then lie where backwards have left them, in as many tensors as the model
// has, and devices come from work or from sleep. A single large tensor that is added again and
// again takes a fraction of that time.

#include <span>
#include <vector>

#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"
#include "traces/timeline.h"

namespace frazil {

// StepEndMeter takes the times of recorded steps, from the moment when the last device has come to
// the moment when the last one is done, which is what the simulator prices. Each answer is the
// trimmed mean over the steps (analysis/ratio_interval.h), 0 where there was none.
class StepEndMeter {
 public:
  // `keep`: the share of the steps, counted from the shortest time, that a mean is taken over.
  explicit StepEndMeter(double keep = 0.9) : keep_(keep) {}

  // `spans`: of one step, of all devices, on one clock.
  void add_step(std::span<const Span> spans);
  Duration reduction() const;
  Duration commit_round() const;
  // From the first beginning of an action to the beginning of the first action of the last device.
  Duration hand_out() const;

 private:
  double keep_;
  std::vector<double> reductions_;
  std::vector<double> rounds_;
  std::vector<double> starts_;
};

// Returns the bandwidth with which the closed forms of sim/collective_cost.h let the reductions of
// a step of this plan, whose owners are the same for all layers, take `time` over links of this
// latency; 0 (unlimited) where the plan reduces nothing.
BytesPerSecond find_reduction_bandwidth(Duration time, const Plan& plan,
                                        const ModelProfile& structure, Duration latency);

}  // namespace frazil
