#include "planner/reproduce/launches.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace frazil {
namespace {

struct Launch {
  int clock = 0;
  StageId stage;
  TaskId task = kNoTask;  // the F that this launch starts
};

int count_layers(const Stage& stage) {
  int layers = 0;
  for (const LayerRange& range : stage.layers) layers += range.last.value - range.first.value + 1;
  return layers;
}

// Tells whether stage 0 is the frozen prefix, which lies on the device of stage 1.
bool has_frozen_stage(const Pipeline& pipeline) {
  return pipeline.stages.size() > 1 && pipeline.stages[0].devices == pipeline.stages[1].devices;
}

std::vector<Launch> list_launches(const LoweredStep& step, const Plan& plan, PipelineId id) {
  const Pipeline& pipeline = plan.pipelines[id.index()];
  const int first_stage = has_frozen_stage(pipeline) ? 1 : 0;
  std::vector<Launch> launches;
  for (TaskId task = 0; task < step.actions.size(); ++task) {
    const Action& action = step.actions[task];
    if (action.kind != ActionKind::kForward || action.pipeline != id) continue;
    if (action.stage.value < first_stage) continue;
    const int clock = action.stage.value + turn_of(pipeline, action.micro_batches->first);
    launches.push_back({clock, action.stage, task});
  }
  std::sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) {
    return std::tie(a.clock, a.stage) < std::tie(b.clock, b.stage);
  });
  return launches;
}

}  // namespace

void add_launches(LoweredStep& step, const Plan& plan, Duration of_layer) {
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const Pipeline& pipeline = plan.pipelines[p];
    const auto launches = list_launches(step, plan, PipelineId{p});
    const LaneId lane = step.graph.add_lane(pipeline.stages.front().devices.front(), Lane::kHost);
    TaskId before = kNoTask;
    for (const Launch& launch : launches) {
      if (before != kNoTask) step.graph.add_dependency(launch.task, before);
      const int layers = count_layers(pipeline.stages[launch.stage.index()]);
      before = step.graph.add_task(lane, step.graph.add_work(Fixed{of_layer * layers}));
      step.actions.push_back(step.actions[launch.task]);
    }
  }
}

}  // namespace frazil
