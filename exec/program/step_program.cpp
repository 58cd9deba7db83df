#include "exec/program/step_program.h"

#include <algorithm>
#include <set>
#include <string>

#include "planner/actions/schedule_check.h"
#include "planner/plan/gradient_waits.h"
#include "planner/plan/stage_slices.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void refuse_what_cannot_run(const Plan& plan) {
  if (plan.versions == WeightVersions::kLatest || plan.versions == WeightVersions::kPredicted) {
    throw InfeasibleError("the executor runs the weight versions sync, stash and 2bw so far");
  }
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      if (stage.memory == MemoryPolicy::kOffload) {
        throw InfeasibleError("the executor does not run the memory policy offload yet");
      }
      // R would read the newest weights, not those that its F has read.
      if (stage.memory == MemoryPolicy::kRecompute && plan.versions != WeightVersions::kSync) {
        throw InfeasibleError("the executor does not recompute with weight versions yet");
      }
    }
  }
}

std::vector<TiedUses> find_tied_uses(const ModelProfile& structure, const Activity& activity,
                                     const std::vector<std::vector<LayerOwner>>& owners) {
  std::vector<TiedUses> all;
  for (const TiedParameter& tied : structure.tied) {
    TiedUses uses;
    uses.layers = find_updated_uses(tied, activity);
    if (uses.layers.empty()) continue;
    if (uses.layers.size() < tied.layers.size()) {
      throw InfeasibleError("a use of the tied parameter " + tied.name + " reaches no loss");
    }
    std::set<DeviceId> devices;
    for (const LayerId layer : uses.layers) {
      for (const LayerOwner& owner : owners[layer.index()]) devices.insert(owner.device);
    }
    uses.devices.assign(devices.begin(), devices.end());
    all.push_back(std::move(uses));
  }
  return all;
}

// Removes the micro-batches from `end` on from a list. A pair may leave one half behind.
void drop_micro_batches(std::vector<Action>& actions, std::int32_t end) {
  const auto is_gone = [end](const Action& action) {
    return action.micro_batches && action.micro_batches->first.value >= end;
  };
  std::vector<Action> kept;
  for (const Action& action : actions) {
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      const Action& first = pair->halves.front();
      const Action& second = pair->halves.back();
      if (!is_gone(first) && !is_gone(second)) {
        kept.push_back(action);
      } else if (!is_gone(first) || !is_gone(second)) {
        kept.push_back(is_gone(first) ? second : first);
      }
    } else if (!is_gone(action)) {
      kept.push_back(action);
    }
  }
  actions = std::move(kept);
}

}  // namespace

const Stage& StepProgram::stage(PipelineId pipeline, StageId stage) const {
  return plan.pipelines[pipeline.index()].stages[stage.index()];
}

DeviceId StepProgram::device_of(PipelineId pipeline, StageId stage, MicroBatchId micro_batch,
                                std::optional<std::int32_t> slice) const {
  return frazil::device_of(plan.pipelines[pipeline.index()], stage, micro_batch, slice);
}

bool StepProgram::splits_backward(PipelineId pipeline, StageId id) const {
  const auto is_half = [&](const Action& action) {
    return (action.kind == ActionKind::kBackwardInput ||
            action.kind == ActionKind::kBackwardWeight) &&
           action.pipeline == pipeline && action.stage == id;
  };
  const auto has_half = [&](const Action& action) {
    const auto* pair = std::get_if<ActionPair>(&action.detail);
    return pair == nullptr ? is_half(action)
                           : std::any_of(pair->halves.begin(), pair->halves.end(), is_half);
  };
  const std::vector<DeviceId>& devices = stage(pipeline, id).devices;
  return std::any_of(devices.begin(), devices.end(), [&](DeviceId device) {
    const std::vector<Action>& list = schedule.devices[device.index()];
    return std::any_of(list.begin(), list.end(), has_half);
  });
}

StepProgram make_program(const Plan& plan, const ModelProfile& structure, int devices, bool clip,
                         MessageOrder order) {
  refuse_what_cannot_run(plan);
  StepProgram program;
  program.plan = plan;
  program.activity = find_activity(structure, plan);
  const Schedule compute = make_schedule(plan, devices);
  validate_schedule(compute, plan, program.activity, "plan");
  Plan without_waits = plan;  // an I without work is nothing to execute
  clear_gradient_waits(without_waits);
  program.schedule = complete_schedule(compute, without_waits, structure, program.activity, clip);
  Schedule ordered = order_receives(program.schedule);  // throws if every order deadlocks
  if (order == MessageOrder::kAsSent) program.schedule = std::move(ordered);
  program.versions = find_versions(plan, program.schedule);
  program.topology = find_topology(plan, structure, program.activity);
  program.tied = find_tied_uses(structure, program.activity, program.topology.owners);
  if (!program.tied.empty() && plan.versions != WeightVersions::kSync) {
    throw InfeasibleError("the executor does not keep versions of tied parameters yet");
  }
  return program;
}

Plan shorten(const Plan& plan, int samples) {
  Plan shorter = plan;
  shorter.batch_size = samples;
  const std::int32_t end = shorter.micro_batches();
  for (Pipeline& pipeline : shorter.pipelines) {
    std::vector<MicroBatches> kept;
    for (MicroBatches range : pipeline.micro_batches) {
      range.last.value = std::min(range.last.value, end - 1);
      if (range.first.value <= range.last.value) kept.push_back(range);
    }
    pipeline.micro_batches = kept;
  }
  if (auto* lists = std::get_if<ExplicitSchedule>(&shorter.schedule)) {
    for (std::vector<Action>& actions : lists->devices) drop_micro_batches(actions, end);
  }
  return shorter;
}

Plan fall_back(const Plan& plan) {
  Plan simpler = plan;
  const bool is_linear =
      std::all_of(plan.pipelines.begin(), plan.pipelines.end(), [](const Pipeline& pipeline) {
        std::set<DeviceId> devices;
        std::size_t places = 0;
        for (const Stage& stage : pipeline.stages) {
          devices.insert(stage.devices.begin(), stage.devices.end());
          places += stage.devices.size();
        }
        return devices.size() == places;
      });
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      if (!find_thin_micro_batch(plan, PipelineId{p}, StageId{s})) continue;
      simpler.pipelines[p].stages[s].axis = DeviceAxis::kData;
    }
  }
  simpler.schedule = NamedSchedule{.kind = is_linear ? ScheduleKind::kOneForwardOneBackward
                                                     : ScheduleKind::kGpipe};
  return simpler;
}

}  // namespace frazil
