#include "planner/schedules/stage_times.h"

#include <algorithm>

#include "planner/lowering/stage_work.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

Duration price_part(const Stage& stage, ActionKind kind, const Plan& plan, const Activity& activity,
                    Setting setting) {
  const auto parts = find_stage_parts(stage, kind, activity);
  if (parts.empty()) return Duration{0};
  return price(Compute{stage.devices.front(), plan.micro_batch_size, parts}, setting);
}

Duration price_message(DeviceId from, DeviceId to, Bytes size, const Cluster& cluster) {
  if (from == to) return Duration{0};
  const Link link = cluster.link(from, to);
  return size / link.bandwidth + link.latency;
}

}  // namespace

void find_stage_times(const Plan& plan, PipelineId id, Setting setting, OrderProblem& problem) {
  const ModelProfile& profile = setting.profile();
  const Cluster& cluster = setting.cluster();
  const Pipeline& pipeline = plan.pipelines.at(id.index());
  const Activity activity = find_activity(profile, plan);
  problem.times.clear();
  for (const Stage& stage : pipeline.stages) {
    const auto part = [&](ActionKind kind) {
      return price_part(stage, kind, plan, activity, setting);
    };
    problem.times.push_back({part(ActionKind::kForward), part(ActionKind::kBackwardInput),
                             part(ActionKind::kBackwardWeight)});
  }
  problem.hop = Duration{0};
  for (const StageBoundary& boundary : find_stage_boundaries(pipeline, profile, activity)) {
    const DeviceId from = pipeline.stages[boundary.from.index()].devices.front();
    const DeviceId to = pipeline.stages[boundary.to.index()].devices.front();
    const int size = plan.micro_batch_size;
    problem.hop = std::max({problem.hop,
                            price_message(from, to, boundary.activation_per_sample * size, cluster),
                            price_message(to, from, boundary.gradient_per_sample * size, cluster)});
  }
}

}  // namespace frazil
