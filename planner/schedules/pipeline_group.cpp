#include "planner/schedules/pipeline_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "planner/plan/stage_slices.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::vector<MicroBatchId> owned_micro_batches(const Pipeline& pipeline) {
  std::vector<MicroBatchId> owned;
  for (const MicroBatches& interval : pipeline.micro_batches) {
    for (MicroBatchId m = interval.first; m <= interval.last; ++m.value) owned.push_back(m);
  }
  return owned;
}

void refuse_other_placement(const Pipeline& pipeline, PipelineId id, const PipelineGroup& group,
                            const ScheduleFacts& facts, int direction) {
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const int place =
        device_of_stage(facts.placement, group.problem.devices, direction, static_cast<int>(s));
    const DeviceId expected = group.devices[static_cast<std::size_t>(place)];
    const DeviceId found = pipeline.stages[s].devices.front();
    if (found == expected) continue;
    throw InfeasibleError(fmt::format(
        "{} (placement {}) places stage {} of pipeline {} on device {}, not on device {}",
        schedule_name(facts.kind), placement_name(facts.placement), s, id.value, expected.value,
        found.value));
  }
}

void refuse_chunks(const NamedSchedule& chosen, const ScheduleFacts& facts, std::size_t stages,
                   int devices) {
  const std::string_view name = schedule_name(facts.kind);
  if (stages != static_cast<std::size_t>(devices) * static_cast<std::size_t>(chosen.chunks)) {
    throw InfeasibleError(
        fmt::format("{} with {} {} per device does not fit {} stages on {} "
                    "devices",
                    name, chosen.chunks, chosen.chunks == 1 ? "chunk" : "chunks", stages, devices));
  }
  const bool legal = facts.legal == ScheduleFacts::Chunks::kAny ||
                     (facts.legal == ScheduleFacts::Chunks::kEven && chosen.chunks % 2 == 0) ||
                     chosen.chunks == facts.chunks;
  if (!legal) {
    throw InfeasibleError(fmt::format("{} has {} {} per device, not {}", name, facts.chunks,
                                      facts.chunks == 1 ? "chunk" : "chunks", chosen.chunks));
  }
}

void refuse_in_flight(const NamedSchedule& chosen, const ScheduleFacts& facts) {
  if (!chosen.in_flight || facts.takes_in_flight) return;
  throw InfeasibleError(fmt::format("in-flight {} is not defined for {}, which fixes it itself",
                                    *chosen.in_flight, schedule_name(facts.kind)));
}

}  // namespace

std::vector<DeviceId> devices_in_order(const Pipeline& pipeline) {
  std::vector<DeviceId> devices;
  for (const Stage& stage : pipeline.stages) {
    for (const DeviceId device : stage.devices) {
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
        devices.push_back(device);
      }
    }
  }
  return devices;
}

PipelineGroup read_group(const Plan& plan, PipelineId first, const ScheduleFacts& facts) {
  const auto& chosen = std::get<NamedSchedule>(plan.schedule);
  PipelineGroup group;
  group.first = first;
  const Pipeline& along = plan.pipelines[first.index()];
  group.devices = devices_in_order(along);
  OrderProblem& problem = group.problem;
  problem.devices = static_cast<int>(group.devices.size());
  problem.chunks = chosen.chunks;
  problem.micro_batches = 0;
  problem.in_flight = chosen.in_flight;
  refuse_chunks(chosen, facts, along.stages.size(), problem.devices);
  refuse_in_flight(chosen, facts);
  for (int direction = 0; direction < directions(facts.placement); ++direction) {
    const PipelineId id{first.value + direction};
    if (id.index() >= plan.pipelines.size() ||
        plan.pipelines[id.index()].stages.size() != along.stages.size()) {
      throw InfeasibleError(fmt::format(
          "{} runs both ways: each pipeline needs a second one of as many stages after it",
          schedule_name(facts.kind)));
    }
    const Pipeline& pipeline = plan.pipelines[id.index()];
    refuse_other_placement(pipeline, id, group, facts, direction);
    group.owned.push_back(owned_micro_batches(pipeline));
    problem.micro_batches += static_cast<int>(group.owned.back().size());
  }
  if (group.owned.front().size() != group.owned.back().size()) {
    throw InfeasibleError(fmt::format(
        "{} gives each direction as many micro-batches as the other, not {} and {}",
        schedule_name(facts.kind), group.owned.front().size(), group.owned.back().size()));
  }
  return group;
}

PipelineGroup read_any_placement(const Plan& plan, PipelineId id) {
  const auto& chosen = std::get<NamedSchedule>(plan.schedule);
  refuse_in_flight(chosen, facts_of(chosen.kind));
  PipelineGroup group;
  group.first = id;
  const Pipeline& pipeline = plan.pipelines[id.index()];
  group.devices = devices_in_order(pipeline);
  group.owned.push_back(owned_micro_batches(pipeline));
  group.problem.devices = static_cast<int>(group.devices.size());
  group.problem.micro_batches = static_cast<int>(group.owned.front().size());
  group.problem.in_flight = chosen.in_flight;
  return group;
}

std::vector<StagePlaces> places_of_stages(const Pipeline& pipeline,
                                          const std::vector<DeviceId>& devices) {
  std::vector<StagePlaces> places;
  for (const Stage& stage : pipeline.stages) {
    StagePlaces& of_stage = places.emplace_back();
    of_stage.is_sliced = slices_of(stage) > 1;
    for (const DeviceId device : stage.devices) {
      const auto place = std::find(devices.begin(), devices.end(), device);
      of_stage.devices.push_back(static_cast<int>(place - devices.begin()));
    }
  }
  return places;
}

}  // namespace frazil
