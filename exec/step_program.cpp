#include "exec/step_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "planner/schedule_check.h"
#include "planner/schedules.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void refuse_what_cannot_run(const Plan& plan, const ModelProfile& structure) {
  if (plan.reduction != ReductionMode::kExact) {
    throw InfeasibleError("the executor does not run reduction mode fast yet, only exact");
  }
  if (plan.versions == WeightVersions::kLatest || plan.versions == WeightVersions::kPredicted) {
    throw InfeasibleError("the executor runs the weight versions sync, stash and 2bw so far");
  }
  if (plan.cache_frozen_prefix) {
    throw InfeasibleError("the executor does not cache a frozen prefix yet");
  }
  for (std::size_t i = 0; i < structure.edges.size(); ++i) {
    const Edge& edge = structure.edges[i];
    if (edge.to.value != edge.from.value + 1 || edge.kind != EdgeKind::kGradient) {
      throw InfeasibleError("the executor runs chains of layers only, not the edge from layer " +
                            std::to_string(edge.from.value) + " to layer " +
                            std::to_string(edge.to.value));
    }
  }
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      if (stage.layers.size() != 1 || stage.devices.size() != 1) {
        throw InfeasibleError("the executor runs stages of one run of layers on one device only");
      }
      if (stage.memory == MemoryPolicy::kOffload) {
        throw InfeasibleError("the executor does not run the memory policy offload yet");
      }
      // R would read the newest weights, not those its F has read.
      if (stage.memory == MemoryPolicy::kRecompute && plan.versions != WeightVersions::kSync) {
        throw InfeasibleError("the executor does not recompute with weight versions yet");
      }
    }
  }
}

std::vector<TreeNode> owned_intervals(const Pipeline& pipeline) {
  std::vector<TreeNode> intervals;
  for (const MicroBatches& range : pipeline.micro_batches) {
    intervals.push_back({range.first.value, range.last.value + 1});
  }
  return intervals;
}

std::vector<std::vector<LayerOwner>> find_owners(const Plan& plan, std::size_t layers) {
  std::vector<std::map<DeviceId, std::vector<TreeNode>>> owners(layers);
  for (const Pipeline& pipeline : plan.pipelines) {
    const std::vector<TreeNode> intervals = owned_intervals(pipeline);
    for (const Stage& stage : pipeline.stages) {
      for (std::int32_t l = stage.layers[0].first.value; l <= stage.layers[0].last.value; ++l) {
        std::vector<TreeNode>& all = owners[LayerId{l}.index()][stage.devices[0]];
        all.insert(all.end(), intervals.begin(), intervals.end());
        std::sort(all.begin(), all.end());
      }
    }
  }
  std::vector<std::vector<LayerOwner>> lists(layers);
  for (std::size_t l = 0; l < layers; ++l) {
    for (const auto& [device, intervals] : owners[l]) lists[l].push_back({device, intervals});
  }
  return lists;
}

// What is left of a list without the micro-batches from `end` on; of a pair perhaps a half.
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

DeviceId StepProgram::device_of(PipelineId pipeline, StageId stage) const {
  return plan.pipelines[pipeline.index()].stages[stage.index()].devices[0];
}

LayerRange StepProgram::layers_of(PipelineId pipeline, StageId stage) const {
  return plan.pipelines[pipeline.index()].stages[stage.index()].layers[0];
}

bool StepProgram::splits_backward(PipelineId pipeline, StageId stage) const {
  const auto is_half = [&](const Action& action) {
    return (action.kind == ActionKind::kBackwardInput ||
            action.kind == ActionKind::kBackwardWeight) &&
           action.pipeline == pipeline && action.stage == stage;
  };
  const std::vector<Action>& list = schedule.devices[device_of(pipeline, stage).index()];
  return std::any_of(list.begin(), list.end(), [&](const Action& action) {
    const auto* pair = std::get_if<ActionPair>(&action.detail);
    return pair == nullptr ? is_half(action)
                           : std::any_of(pair->halves.begin(), pair->halves.end(), is_half);
  });
}

bool StepProgram::recomputes(PipelineId pipeline, StageId stage) const {
  return plan.pipelines[pipeline.index()].stages[stage.index()].memory == MemoryPolicy::kRecompute;
}

ModelProfile make_structure(const ModelSpec& model, int optimizer_bytes_per_parameter_byte) {
  ModelProfile profile;
  const VitConfig& c = model.config;
  profile.model = "vit-i" + std::to_string(c.image) + "-p" + std::to_string(c.patch) + "-d" +
                  std::to_string(c.dim) + "-b" + std::to_string(c.blocks) + "-h" +
                  std::to_string(c.heads) + "-c" + std::to_string(c.classes);
  profile.blocks = model.blocks;
  profile.input_bytes_per_sample = input_bytes_per_sample(model);
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerSpec& spec = model.layers[l];
    std::int64_t values = 0;
    for (const ParameterSpec& parameter : spec.parameters) {
      values += std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1},
                                std::multiplies<>());
    }
    Layer layer;
    layer.name = spec.name;
    layer.block = spec.block;
    layer.has_loss = model.has_loss(LayerId{l});
    layer.parameters = Bytes{values * static_cast<std::int64_t>(sizeof(float))};
    layer.optimizer_state = layer.parameters * optimizer_bytes_per_parameter_byte;
    layer.costs.emplace_back();
    profile.layers.push_back(layer);
    if (l > 0) {
      profile.edges.push_back({LayerId{l - 1},
                               LayerId{l},
                               EdgeKind::kGradient,
                               {boundary_bytes_per_sample(model, LayerId{l - 1})}});
    }
  }
  return profile;
}

StepProgram make_program(const Plan& plan, const ModelProfile& structure, int devices, bool clip) {
  refuse_what_cannot_run(plan, structure);
  StepProgram program;
  program.plan = plan;
  program.activity = find_activity(structure, plan.mask);
  const Schedule compute = make_schedule(plan, devices);
  validate_schedule(compute, plan, program.activity, "plan");
  program.schedule = complete_schedule(compute, plan, structure, program.activity, clip);
  program.versions = find_versions(plan, program.schedule);
  program.owners = find_owners(plan, structure.layers.size());
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
        for (const Stage& stage : pipeline.stages) devices.insert(stage.devices.front());
        return devices.size() == pipeline.stages.size();
      });
  simpler.schedule = NamedSchedule{.kind = is_linear ? ScheduleKind::kOneForwardOneBackward
                                                     : ScheduleKind::kGpipe};
  return simpler;
}

}  // namespace frazil
