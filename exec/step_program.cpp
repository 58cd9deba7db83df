#include "exec/step_program.h"

#include <algorithm>
#include <map>
#include <numeric>
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
  if (plan.versions != WeightVersions::kSync) {
    throw InfeasibleError("the executor runs synchronous weight versions only");
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
      if (stage.memory != MemoryPolicy::kKeep) {
        throw InfeasibleError("the executor runs memory policy keep only");
      }
    }
  }
}

// F and B of whole micro-batches are what a device performs so far; what a schedule has besides is
// said before the first step.
void refuse_other_work(const Schedule& compute, const Plan& plan) {
  for (const std::vector<Action>& list : compute.devices) {
    for (const Action& action : list) {
      if (action.kind == ActionKind::kForward || action.kind == ActionKind::kBackward) continue;
      const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
      throw InfeasibleError(
          "the executor performs F and B so far, not " + to_text(action) + " of " +
          (named == nullptr ? "an explicit schedule"
                            : "the schedule " + std::string(schedule_name(named->kind))));
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

}  // namespace

DeviceId StepProgram::device_of(PipelineId pipeline, StageId stage) const {
  return plan.pipelines[pipeline.index()].stages[stage.index()].devices[0];
}

LayerRange StepProgram::layers_of(PipelineId pipeline, StageId stage) const {
  return plan.pipelines[pipeline.index()].stages[stage.index()].layers[0];
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
  refuse_other_work(compute, plan);
  program.schedule = complete_schedule(compute, plan, structure, program.activity, clip);
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
    for (std::vector<Action>& actions : lists->devices) {
      std::erase_if(actions, [&](const Action& action) {
        return action.micro_batches && action.micro_batches->first.value >= end;
      });
    }
  }
  return shorter;
}

}  // namespace frazil
