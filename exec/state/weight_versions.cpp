#include "exec/state/weight_versions.h"

#include <algorithm>
#include <string>

#include "profiles/error.h"

namespace frazil {
namespace {

// Returns for each micro-batch how many U of the stage come before its backward in the list:
// micro-batches with the same number share an update.
std::vector<int> find_groups(const std::vector<Action>& list, StageId stage,
                             std::size_t micro_batches) {
  std::vector<int> group_of(micro_batches);
  int updates = 0;
  for (const Action& action : list) {
    if (action.stage != stage) continue;
    if (action.kind == ActionKind::kUpdate) ++updates;
    if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
      group_of[action.micro_batches->first.index()] = updates;
    }
  }
  return group_of;
}

int version_for(WeightVersions rule, int newest, int group) {
  return rule == WeightVersions::kTwoBuffered ? std::max(group - 1, 0) : newest;
}

StageVersions follow_list(const std::vector<Action>& list, StageId stage, WeightVersions rule,
                          std::size_t micro_batches) {
  StageVersions versions{std::vector<int>(micro_batches), find_groups(list, stage, micro_batches)};
  int newest = 0;
  for (const Action& action : list) {
    if (action.stage != stage) continue;
    if (action.kind == ActionKind::kUpdate) ++newest;
    if (action.kind != ActionKind::kForward) continue;
    const std::size_t m = action.micro_batches->first.index();
    const int version = version_for(rule, newest, versions.group_of[m]);
    if (version > newest || version < newest - 1) {
      throw InfeasibleError(to_text(action) + " needs version " + std::to_string(version) +
                            " of the weights, and then the stage holds " +
                            (newest == 0 ? "" : std::to_string(newest - 1) + " and ") +
                            std::to_string(newest));
    }
    versions.read[m] = version;
  }
  return versions;
}

}  // namespace

std::vector<StageVersions> find_versions(const Plan& plan, const Schedule& schedule) {
  std::vector<StageVersions> versions;
  if (plan.versions == WeightVersions::kSync) return versions;
  ENSURE(plan.pipelines.size() == 1, "weight versions of one pipeline");
  const std::vector<Stage>& stages = plan.pipelines.front().stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::vector<Action>& list = schedule.devices[stages[s].devices.front().index()];
    versions.push_back(follow_list(list, StageId{s}, plan.versions,
                                   static_cast<std::size_t>(plan.micro_batches())));
  }
  return versions;
}

}  // namespace frazil
