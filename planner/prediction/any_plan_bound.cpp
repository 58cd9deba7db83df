#include "planner/prediction/any_plan_bound.h"

#include <algorithm>
#include <set>

#include "planner/lowering/stage_work.h"
#include "planner/plan/activity.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

// Returns the first of the fastest devices.
DeviceId find_fastest(const Cluster& cluster) {
  const auto fastest =
      std::min_element(cluster.devices.begin(), cluster.devices.end(),
                       [](const Device& a, const Device& b) { return a.time_ppm < b.time_ppm; });
  return DeviceId{static_cast<std::size_t>(fastest - cluster.devices.begin())};
}

// Returns the time of one micro-batch in all layers. A device's time is rounded down for each
// action; a plan with an action for each layer loses that much more than one action does.
Duration time_of_layers(const Plan& plan, Setting setting, ActionKind kind) {
  const std::size_t layers = setting.profile().layers.size();
  Stage all;
  all.layers = {{LayerId{0}, LayerId{layers - 1}}};
  const DeviceId fastest = find_fastest(setting.cluster());
  all.devices = {fastest};
  const Activity activity = find_activity(setting.profile(), plan);
  Compute work{fastest, plan.micro_batch_size, find_stage_parts(all, kind, activity), true};
  if (work.parts.empty()) return Duration{0};
  const bool is_rounded = setting.cluster().devices[fastest.index()].time_ppm != 1'000'000;
  const Duration lost{is_rounded ? static_cast<std::int64_t>(layers) : 0};
  return std::max(Duration{0}, price(Work{std::move(work)}, setting) - lost);
}

int count_own_devices(const Plan& plan) {
  std::set<DeviceId> own;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      own.insert(stage.devices.begin(), stage.devices.end());
    }
  }
  return static_cast<int>(own.size());
}

}  // namespace

LowerBound bound_any_plan(const Plan& plan, Setting setting) {
  const Duration forward = time_of_layers(plan, setting, ActionKind::kForward);
  const Duration input = time_of_layers(plan, setting, ActionKind::kBackwardInput);
  const Duration weight = time_of_layers(plan, setting, ActionKind::kBackwardWeight);
  __extension__ using Wide = __int128;
  const Wide whole = plan.batch_size / plan.micro_batch_size;
  const Wide devices = count_own_devices(plan);
  const Wide work = whole * (forward + input + weight).count();
  const Duration shared{static_cast<std::int64_t>((work + devices - 1) / devices)};
  if (whole > 0 && forward + input > shared) return {forward + input, "one-micro-batch"};
  return {shared, "total-work"};
}

}  // namespace frazil
