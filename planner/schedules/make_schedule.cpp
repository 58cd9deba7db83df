#include "planner/schedules/make_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "planner/actions/schedule_check.h"
#include "planner/orders/make_orders.h"
#include "planner/orders/shared_orders.h"
#include "planner/plan/stage_slices.h"
#include "planner/schedules/dispatch.h"
#include "planner/schedules/pipeline_group.h"
#include "planner/schedules/stage_times.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Names a generator's work in the plan. On `device` the action has the device's slice, if its stage
// has slices.
Action name_work(const OrderedWork& work, const Plan& plan, const PipelineGroup& group,
                 DeviceId device) {
  const PipelineId pipeline{group.first.value + work.direction};
  const StageId stage{work.stage};
  if (work.kind == ActionKind::kUpdate) {
    return make_stage_action(pipeline, stage, ActionKind::kUpdate);
  }
  const auto& owned = group.owned[static_cast<std::size_t>(work.direction)];
  Action action =
      make_action(pipeline, stage, work.kind, owned[static_cast<std::size_t>(work.micro_batch)]);
  action.slice = slice_on(plan.pipelines[pipeline.index()].stages[stage.index()], device);
  return action;
}

// True if `work` needs an R right before it that its schedule does not place.
bool needs_recompute(const OrderedWork& work, const Plan& plan, const PipelineGroup& group) {
  if (work.kind != ActionKind::kBackward && work.kind != ActionKind::kBackwardInput) return false;
  if (facts_of(std::get<NamedSchedule>(plan.schedule).kind).recomputes_itself) return false;
  const std::size_t pipeline = group.first.index() + static_cast<std::size_t>(work.direction);
  const Stage& stage = plan.pipelines[pipeline].stages[static_cast<std::size_t>(work.stage)];
  return stage.memory == MemoryPolicy::kRecompute;
}

void append_named(const DeviceOrder& order, const Plan& plan, const PipelineGroup& group,
                  DeviceId device, std::vector<Action>& list) {
  list.reserve(list.size() + order.size());
  const auto name = [&](const OrderedWork& work) { return name_work(work, plan, group, device); };
  const auto recompute = [&](const OrderedWork& work) {
    if (!needs_recompute(work, plan, group)) return;
    OrderedWork again = work;
    again.kind = ActionKind::kRecompute;
    list.push_back(name(again));
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].overlaps_next) {
      const OrderedWork& backward = order.at(i + 1);
      recompute(backward);
      list.push_back(make_pair_action(name(order[i]), name(backward)));
      ++i;
    } else {
      recompute(order[i]);
      list.push_back(name(order[i]));
    }
  }
}

void refuse_stage(const Stage& stage, const std::string& name) {
  if (stage.axis != DeviceAxis::kData && stage.axis != DeviceAxis::kSamples) {
    throw InfeasibleError(
        fmt::format("{} shares its devices along an axis other than data and samples, which is not "
                    "interpreted yet",
                    name));
  }
  if (stage.memory == MemoryPolicy::kOffload) {
    throw InfeasibleError(
        fmt::format("{} has the memory policy offload, which is not interpreted yet", name));
  }
}

// Throws if a stage has slices and the plan asks for mode exact, whose tree does not sum over
// slices, or if a slice would have no samples and so no gradients.
void refuse_slices(const Plan& plan, PipelineId pipeline, StageId id, const std::string& name) {
  const int slices = slices_of(plan.pipelines[pipeline.index()].stages[id.index()]);
  if (slices == 1) return;
  if (plan.reduction == ReductionMode::kExact) {
    throw InfeasibleError(fmt::format(
        "{} shares micro-batches by samples, which goes with the reduction fast, not exact", name));
  }
  if (const auto thin = find_thin_micro_batch(plan, pipeline, id)) {
    throw InfeasibleError(
        fmt::format("{} shares micro-batches by samples among {} devices, but "
                    "micro-batch {} has {}",
                    name, slices, thin->value, samples_in(plan, *thin)));
  }
}

bool is_any_shared(const Plan& plan, PipelineId first, int pipelines) {
  const std::size_t end =
      std::min(plan.pipelines.size(), first.index() + static_cast<std::size_t>(pipelines));
  return std::any_of(plan.pipelines.begin() + first.value,
                     plan.pipelines.begin() + static_cast<std::ptrdiff_t>(end), has_shared_stage);
}

// Returns their names: "gpipe, 1f1b, eager-1f1b and zb-h1".
std::string list_those_that_share_stages() {
  std::vector<std::string_view> names;
  for (const ScheduleFacts& facts : all_schedules()) {
    if (facts.takes_shared_stages) names.push_back(facts.name);
  }
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

void refuse_other_than_shared(const Plan& plan, PipelineId id) {
  const auto& chosen = std::get<NamedSchedule>(plan.schedule);
  const std::string_view name = schedule_name(chosen.kind);
  if (!facts_of(chosen.kind).takes_shared_stages) {
    throw InfeasibleError(fmt::format("{} takes no stages on several devices; {} do", name,
                                      list_those_that_share_stages()));
  }
  if (chosen.chunks != 1) {
    throw InfeasibleError(fmt::format(
        "{} with {} chunks per device takes no stages on several devices", name, chosen.chunks));
  }
  if (facts_of(chosen.kind).takes_any_placement) return;
  std::map<DeviceId, std::size_t> stage_on;
  const std::vector<Stage>& stages = plan.pipelines[id.index()].stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const DeviceId device : stages[s].devices) {
      const auto [known, added] = stage_on.emplace(device, s);
      if (added) continue;
      throw InfeasibleError(
          fmt::format("{} over stages on several devices takes one stage per device, not stages {} "
                      "and {} of pipeline {} on device {}",
                      name, known->second, s, id.value, device.value));
    }
  }
}

// Throws unless every stage but the last recomputes, as a schedule has it whose lists say when.
// Under other schedules recomputing is a stage's own choice.
void refuse_kept_stash(const Pipeline& pipeline, PipelineId id, const ScheduleFacts& facts) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const bool last = s + 1 == pipeline.stages.size();
    if ((pipeline.stages[s].memory == MemoryPolicy::kRecompute) != last) continue;
    throw InfeasibleError(
        fmt::format("{} recomputes every stage but the last; stage {} of pipeline {} {}",
                    facts.name, s, id.value, last ? "is the last" : "keeps its stash"));
  }
}

void refuse_what_is_not_interpreted(const Plan& plan) {
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<Stage>& stages = plan.pipelines[p].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const std::string name = fmt::format("stage {} of pipeline {}", s, p);
      refuse_stage(stages[s], name);
      refuse_slices(plan, PipelineId{p}, StageId{s}, name);
    }
  }
}

std::string_view versions_name(WeightVersions versions) {
  switch (versions) {
    case WeightVersions::kSync:
      return "sync";
    case WeightVersions::kStash:
      return "stash";
    case WeightVersions::kTwoBuffered:
      return "2bw";
    case WeightVersions::kLatest:
      return "latest";
    case WeightVersions::kPredicted:
      return "predicted";
  }
  return "";
}

void refuse_versions(const Plan& plan, WeightVersions expected, std::string_view schedule) {
  if (plan.versions == expected) return;
  throw InfeasibleError(fmt::format("{} goes with the weight versions {}, not {}", schedule,
                                    versions_name(expected), versions_name(plan.versions)));
}

// Returns an activity in which no layer needs a backward, to check a given schedule without a
// model. validate() in planner/actions/validate_plan.h checks it with the model.
Activity forward_only(const Plan& plan) {
  int layers = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for (const LayerRange& range : stage.layers) layers = std::max(layers, range.last.value + 1);
    }
  }
  return {.layers = std::vector<LayerActivity>(static_cast<std::size_t>(layers)),
          .edge_carries = {}};
}

// Makes the lists of the pipelines that one run of a generator serves, by the devices of `group`.
DeviceOrders order_group(const Plan& plan, PipelineId id, const ScheduleFacts& facts,
                         std::optional<Setting> setting, PipelineGroup& group) {
  const auto& chosen = std::get<NamedSchedule>(plan.schedule);
  const bool is_shared = is_any_shared(plan, id, directions(facts.placement));
  if (is_shared) refuse_other_than_shared(plan, id);
  if (is_shared || (facts.takes_any_placement && chosen.chunks == 1)) {
    group = read_any_placement(plan, id);
    const auto places = places_of_stages(plan.pipelines[id.index()], group.devices);
    return make_shared_orders(chosen.kind, group.problem, places);
  }
  group = read_group(plan, id, facts);
  if (facts.recomputes_itself) refuse_kept_stash(plan.pipelines[id.index()], id, facts);
  if (group.problem.micro_batches == 0) return {};
  if (facts.needs_costs && setting) {
    find_stage_times(plan, id, *setting, group.problem);
  }
  return make_orders(chosen.kind, group.problem);
}

Schedule make_named(const Plan& plan, int devices, std::optional<Setting> setting) {
  const auto& chosen = std::get<NamedSchedule>(plan.schedule);
  const ScheduleFacts& facts = facts_of(chosen.kind);
  refuse_versions(plan, facts.versions, schedule_name(facts.kind));
  if (facts.versions != WeightVersions::kSync && plan.pipelines.size() > 1) {
    throw InfeasibleError(
        fmt::format("{} updates among its backwards, and reductions there are not interpreted yet; "
                    "it takes one "
                    "pipeline, not {}",
                    schedule_name(facts.kind), plan.pipelines.size()));
  }
  Schedule schedule;
  schedule.devices.resize(static_cast<std::size_t>(devices));
  const auto step = static_cast<std::size_t>(directions(facts.placement));
  for (std::size_t p = 0; p < plan.pipelines.size(); p += step) {
    PipelineGroup group;
    const DeviceOrders orders = order_group(plan, PipelineId{p}, facts, setting, group);
    for (std::size_t d = 0; d < orders.size(); ++d) {
      const DeviceId device = group.devices[d];
      append_named(orders[d], plan, group, device, schedule.devices.at(device.index()));
    }
  }
  return schedule;
}

}  // namespace

Schedule make_schedule(const Plan& plan, int devices, std::optional<Setting> setting) {
  refuse_what_is_not_interpreted(plan);
  if (std::holds_alternative<DispatchPolicy>(plan.schedule)) {
    if (setting) return dispatch(plan, devices, *setting);
    throw InfeasibleError("a dispatch policy decides by times, which are not known here");
  }
  if (const auto* given = std::get_if<ExplicitSchedule>(&plan.schedule)) {
    ENSURE(given->devices.size() == static_cast<std::size_t>(devices),
           "an explicit schedule has one list per device");
    refuse_versions(plan, WeightVersions::kSync, "an explicit schedule");
    validate_schedule({given->devices}, plan, forward_only(plan), "schedule");
    return {given->devices};
  }
  return make_named(plan, devices, setting);
}

}  // namespace frazil
