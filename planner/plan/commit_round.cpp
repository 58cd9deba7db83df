#include "planner/plan/commit_round.h"

#include <algorithm>

#include "profiles/processes.h"

namespace frazil {
namespace {

bool has_update(const std::vector<Action>& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const Action& action) { return action.kind == ActionKind::kUpdate; });
}

}  // namespace

std::vector<DeviceId> list_used_devices(const Plan& plan) {
  std::vector<DeviceId> used;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      used.insert(used.end(), stage.devices.begin(), stage.devices.end());
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

bool updates_at_end(const Plan& plan) {
  if (plan.versions != WeightVersions::kSync) return false;
  const auto* given = std::get_if<ExplicitSchedule>(&plan.schedule);
  return given == nullptr || std::none_of(given->devices.begin(), given->devices.end(), has_update);
}

std::optional<Duration> find_commit_round(const Plan& plan, const Cluster& cluster) {
  const bool commits = tells_processes(cluster) && updates_at_end(plan) &&
                       span_processes(cluster, list_used_devices(plan));
  return commits ? std::optional(commit_round_of(cluster)) : std::nullopt;
}

bool ends_with_a_process(const Plan& plan, const Cluster& cluster) {
  return tells_processes(cluster) && !updates_at_end(plan) &&
         span_processes(cluster, list_used_devices(plan));
}

}  // namespace frazil
