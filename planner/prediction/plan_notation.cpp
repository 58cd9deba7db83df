#include "planner/prediction/plan_notation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

std::string suffix_text(const NamedSchedule& schedule, bool recompute) {
  const Suffixes suffixes = suffixes_of(schedule, recompute);
  std::string text;
  if (suffixes.chunks) text += fmt::format(" v{}", schedule.chunks);
  if (suffixes.in_flight) text += fmt::format(" K{}", *schedule.in_flight);
  return suffixes.recompute ? text + " R" : text;
}

}  // namespace

std::string shape_notation(std::size_t stages, std::size_t pipelines) {
  return fmt::format("{} x {}", stages, pipelines);
}

std::string shape_notation(const Plan& plan) {
  const std::size_t first = plan.pipelines.front().stages.size();
  std::map<std::size_t, int, std::greater<>> others;
  for (const Pipeline& pipeline : plan.pipelines) {
    if (pipeline.stages.size() != first) ++others[pipeline.stages.size()];
  }
  std::string text = shape_notation(first, plan.pipelines.size());
  for (const auto& [stages, count] : others) text += fmt::format(" ({} of {})", count, stages);
  return text;
}

ParallelShape parallel_shape(const Plan& plan) {
  ParallelShape shape;
  std::map<DeviceId, int> stages_on;
  std::set<int, std::greater<>> sizes;
  int groups = 0;
  for (const Pipeline& pipeline : plan.pipelines) {
    std::set<DeviceId> own;
    bool is_shared = false;
    for (const Stage& stage : pipeline.stages) {
      for (const DeviceId device : stage.devices) own.insert(device);
      shape.shares_stages = shape.shares_stages || stage.devices.size() > 1;
    }
    for (const DeviceId device : own) is_shared = is_shared || stages_on.count(device) > 0;
    for (const Stage& stage : pipeline.stages) {
      for (const DeviceId device : stage.devices) ++stages_on[device];
    }
    // A pipeline on the devices of an earlier one is its other direction.
    shape.both_ways = shape.both_ways || is_shared;
    if (is_shared) continue;
    ++groups;
    sizes.insert(static_cast<int>(own.size()));
  }
  for (const auto& [device, stages] : stages_on) shape.chunks = std::max(shape.chunks, stages);
  shape.pipeline_devices.assign(sizes.begin(), sizes.end());
  shape.replicas = groups;
  return shape;
}

int count_replicas(const Plan& plan) {
  int most = parallel_shape(plan).replicas;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      most = std::max(most, static_cast<int>(stage.devices.size()));
    }
  }
  return most;
}

std::string pipeline_devices_text(const ParallelShape& shape) {
  std::string text;
  for (const int devices : shape.pipeline_devices) {
    text += (text.empty() ? "" : "/") + std::to_string(devices);
  }
  return text;
}

std::string schedule_notation(const Plan& plan) {
  if (const auto* named = std::get_if<NamedSchedule>(&plan.schedule)) {
    return std::string(schedule_name(named->kind));
  }
  if (const auto* policy = std::get_if<DispatchPolicy>(&plan.schedule)) {
    return std::string(policy_name(*policy));
  }
  return has_searched_order(plan) ? "search" : "explicit";
}

bool recomputes(const Plan& plan) {
  return plan.pipelines.front().stages.front().memory == MemoryPolicy::kRecompute;
}

void Suffixes::add(const Suffixes& others) {
  chunks = chunks || others.chunks;
  in_flight = in_flight || others.in_flight;
  recompute = recompute || others.recompute;
}

Suffixes suffixes_of(const NamedSchedule& schedule, bool recompute) {
  return {schedule.chunks != facts_of(schedule.kind).chunks, schedule.in_flight.has_value(),
          recompute};
}

Suffixes suffixes_of(const Plan& plan) {
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  if (named == nullptr) return {.chunks = false, .in_flight = false, .recompute = recomputes(plan)};
  return suffixes_of(*named, recomputes(plan));
}

std::string variant_notation(const NamedSchedule& schedule, bool recompute) {
  return std::string(schedule_name(schedule.kind)) + suffix_text(schedule, recompute);
}

std::string variant_notation(const Plan& plan) {
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  const std::string text = named != nullptr
                               ? variant_notation(*named, recomputes(plan))
                               : schedule_notation(plan) + (recomputes(plan) ? " R" : "");
  return plan.cache_frozen_prefix ? text + " cached" : text;
}

std::string explain_suffixes(const Suffixes& suffixes) {
  std::string text;
  const auto add = [&](bool occurs, std::string_view meaning) {
    if (!occurs) return;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", meaning);
  };
  add(suffixes.chunks, "vN: N chunks of the model on each device");
  add(suffixes.in_flight, "KN: N micro-batches in flight at most");
  add(suffixes.recompute, "R: activation checkpointing, stages run their forwards again");
  return text.empty() ? "" : text + "\n";
}

}  // namespace frazil
