#include "planner/micro_batch_paths.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>

#include "sim/cost_model.h"

namespace frazil {
namespace {

constexpr Duration kNone{0};

constexpr std::array kFusedSchedules{ScheduleKind::kGpipe,
                                     ScheduleKind::kOneForwardOneBackward,
                                     ScheduleKind::kEagerOneForwardOneBackward,
                                     ScheduleKind::kInterleaved,
                                     ScheduleKind::kLoopedBfs,
                                     ScheduleKind::kChimera,
                                     ScheduleKind::kBitPipe,
                                     ScheduleKind::kHanayo,
                                     ScheduleKind::kPipeDream,
                                     ScheduleKind::kPipeDream2Bw,
                                     ScheduleKind::kVaruna};

// Whether every backward is a B, or an I that has no W. What is not known to be may be split.
bool is_fused(const ScheduleChoice& schedule) {
  if (const auto* named = std::get_if<NamedSchedule>(&schedule)) {
    return std::count(kFusedSchedules.begin(), kFusedSchedules.end(), named->kind) > 0;
  }
  const auto* given = std::get_if<ExplicitSchedule>(&schedule);
  if (given == nullptr) return false;
  const auto is_weight = [](const Action& action) {
    return action.kind == ActionKind::kBackwardWeight;
  };
  return std::none_of(given->devices.begin(), given->devices.end(), [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), is_weight);
  });
}

bool grow(Duration& value, Duration candidate) {
  if (candidate <= value) return false;
  value = candidate;
  return true;
}

// Stages are nearly always in the order of the data, so that the second round changes nothing; any
// order ends within as many rounds as there are stages.
template <class Step>
void relax(const PipelineTable& table, Step step) {
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t b = 0; b < table.boundaries.size(); ++b) {
      grew |= step(table.boundaries[b], b);
    }
  }
}

// Micro-batches by (size, device of each stage), in the order of the first of each.
using Routes = std::vector<std::pair<std::pair<int, std::vector<DeviceId>>, int>>;

Routes count_routes(const Plan& plan, const Pipeline& pipeline) {
  Routes routes;
  std::map<std::pair<int, std::vector<DeviceId>>, std::size_t> place;
  const auto add = [&](int samples, std::vector<DeviceId> devices, int count) {
    if (count == 0) return;
    std::pair key(samples, std::move(devices));
    const auto [known, added] = place.emplace(key, routes.size());
    if (added) routes.emplace_back(std::move(key), 0);
    routes[known->second].second += count;
  };
  const MicroBatchId last{plan.micro_batches() - 1};
  const bool is_shared = has_shared_stage(pipeline);
  const auto devices_of = [&](MicroBatchId m) {
    std::vector<DeviceId> devices;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      devices.push_back(device_of(pipeline, StageId{s}, m));
    }
    return devices;
  };
  for (const MicroBatches& owned : pipeline.micro_batches) {
    const int at_end = owned.last == last ? 1 : 0;  // it may be short
    if (is_shared) {
      for (MicroBatchId m = owned.first; m <= owned.last; ++m.value) {
        add(samples_in(plan, m), devices_of(m), 1);
      }
    } else {
      add(plan.micro_batch_size, devices_of(owned.first), owned.count() - at_end);
      add(samples_in(plan, owned.last), devices_of(owned.last), at_end);
    }
  }
  return routes;
}

}  // namespace

MicroBatchPricing::MicroBatchPricing(const Plan& plan, const ModelProfile& profile,
                                     const Cluster& cluster)
    : plan_(plan),
      profile_(profile),
      cluster_(cluster),
      activity_(find_activity(profile, plan.mask)),
      fused_(is_fused(plan.schedule)) {}

Duration MicroBatchPricing::update(const StageEntry& stage, DeviceId device) const {
  return compute(stage, device, ActionKind::kUpdate, 1);
}

Duration MicroBatchPricing::overhead(DeviceId device) const {
  return cluster_.devices.at(device.index()).step_overhead;
}

std::vector<MicroBatchClass> MicroBatchPricing::find_classes(PipelineId pipeline,
                                                             const PipelineTable& table) const {
  std::vector<MicroBatchClass> classes;
  for (const auto& [route, count] : count_routes(plan_, plan_.pipelines[pipeline.index()])) {
    MicroBatchClass& found = classes.emplace_back();
    found.count = count;
    found.devices = route.second;
    found.times = find_times(table, found.devices, route.first);
    found.path = find_path(table, found);
  }
  return classes;
}

Duration MicroBatchPricing::compute(const StageEntry& stage, DeviceId device, ActionKind kind,
                                    int samples) const {
  const auto parts = find_stage_parts(*stage.stage, kind, activity_);
  if (parts.empty() && kind != ActionKind::kForward) return kNone;
  return price(Compute{device, samples, parts}, profile_, cluster_);
}

// What may run as B or as I and W counts as the cheaper: B has the device's overhead once.
StageTimes MicroBatchPricing::stage_times(const StageEntry& stage, DeviceId device,
                                          int samples) const {
  const auto time = [&](ActionKind kind) { return compute(stage, device, kind, samples); };
  const Duration fused = time(ActionKind::kBackward);
  if (fused_) return {time(ActionKind::kForward), fused, kNone};
  const Duration input = time(ActionKind::kBackwardInput);
  return {time(ActionKind::kForward), input,
          std::min(time(ActionKind::kBackwardWeight), fused - input)};
}

Duration MicroBatchPricing::crossing(DeviceId from, DeviceId to, Bytes size) const {
  if (from == to) return kNone;
  const Link link = cluster_.link(from, to);
  return size / link.bandwidth + link.latency;
}

MicroBatchTimes MicroBatchPricing::find_times(const PipelineTable& table,
                                              const std::vector<DeviceId>& devices,
                                              int samples) const {
  MicroBatchTimes times;
  for (std::size_t s = 0; s < devices.size(); ++s) {
    const StageEntry& stage = table.stages[s];
    const bool again = stage.has_backward && stage.stage->memory == MemoryPolicy::kRecompute;
    times.stages.push_back(stage_times(stage, devices[s], samples));
    times.recompute.push_back(again ? compute(stage, devices[s], ActionKind::kRecompute, samples)
                                    : kNone);
  }
  for (const StageBoundary& boundary : table.boundaries) {
    const DeviceId from = devices[boundary.from.index()];
    const DeviceId to = devices[boundary.to.index()];
    times.down.push_back(crossing(from, to, boundary.activation_per_sample * samples));
    times.up.push_back(crossing(to, from, boundary.gradient_per_sample * samples));
  }
  return times;
}

MicroBatchPath MicroBatchPricing::find_path(const PipelineTable& table,
                                            const MicroBatchClass& of) const {
  const MicroBatchTimes& times = of.times;
  const std::size_t stages = table.stages.size();
  MicroBatchPath path;
  for (std::size_t s = 0; s < stages; ++s) {
    const StageEntry& stage = table.stages[s];
    path.head.push_back(overhead(of.devices[s]));
    path.after_input.push_back(stage.has_backward
                                   ? times.stages[s].backward_weight + update(stage, of.devices[s])
                                   : kNone);
  }
  relax(table, [&](const StageBoundary& boundary, std::size_t b) {
    const auto [from, to] = std::pair(boundary.from.index(), boundary.to.index());
    const StageTimes& sender = times.stages[from];
    bool grew = grow(path.head[to], path.head[from] + sender.forward + times.down[b]);
    if (boundary.carries) {
      grew |=
          grow(path.after_input[to], times.up[b] + sender.backward_input + path.after_input[from]);
    }
    return grew;
  });
  for (std::size_t s = 0; s < stages; ++s) {
    path.after_forward.push_back(table.stages[s].has_backward
                                     ? times.recompute[s] + times.stages[s].backward_input +
                                           path.after_input[s]
                                     : kNone);
  }
  relax(table, [&](const StageBoundary& boundary, std::size_t b) {
    const auto [from, to] = std::pair(boundary.from.index(), boundary.to.index());
    return grow(path.after_forward[from],
                times.down[b] + times.stages[to].forward + path.after_forward[to]);
  });
  return path;
}

}  // namespace frazil
