#include "planner/prediction/micro_batch_paths.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "planner/plan/stage_slices.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

// True if every backward is known to be a B, or an I that has no W. Dispatch policies count as
// split.
bool is_fused(const ScheduleChoice& schedule) {
  if (const auto* named = std::get_if<NamedSchedule>(&schedule)) {
    return !facts_of(named->kind).splits_backward;
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

// Repeats `step` over all crossings until nothing changes. Stages are nearly always in the order of
// the data, and then the second round changes nothing; any order ends within as many rounds as
// there are parts.
template <class Step>
void relax(const std::vector<RouteCrossing>& crossings, Step step) {
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t c = 0; c < crossings.size(); ++c) grew |= step(crossings[c], c);
  }
}

// Micro-batches that have one size and one list of devices.
struct Route {
  MicroBatchId first;
  int samples = 0;
  int count = 0;
};

// Counts the micro-batches by (size, device of each stage), in the order of their first
// micro-batches.
std::vector<Route> count_routes(const Plan& plan, const Pipeline& pipeline) {
  std::vector<Route> routes;
  std::map<std::pair<int, std::vector<DeviceId>>, std::size_t> place;
  const auto devices_of = [&](MicroBatchId m) {
    std::vector<DeviceId> devices;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      // A stage with slices has one list of devices for all micro-batches.
      if (slices_of(pipeline.stages[s]) > 1) continue;
      devices.push_back(device_of(pipeline, StageId{s}, m));
    }
    return devices;
  };
  const auto add = [&](MicroBatchId m, int count) {
    if (count == 0) return;
    const int samples = samples_in(plan, m);
    const auto [known, added] = place.try_emplace({samples, devices_of(m)}, routes.size());
    if (added) routes.push_back({.first = m, .samples = samples, .count = 0});
    routes[known->second].count += count;
  };
  const MicroBatchId last{plan.micro_batches() - 1};
  const bool is_shared = has_shared_stage(pipeline);
  for (const MicroBatches& owned : pipeline.micro_batches) {
    const int at_end = owned.last == last ? 1 : 0;  // it may be short
    if (is_shared) {
      for (MicroBatchId m = owned.first; m <= owned.last; ++m.value) add(m, 1);
    } else {
      add(owned.first, owned.count() - at_end);
      add(owned.last, at_end);
    }
  }
  return routes;
}

// Lists the parts and crossings of the micro-batches of one route.
MicroBatchClass follow_route(const Pipeline& pipeline, const PipelineTable& table,
                             const Route& route) {
  MicroBatchClass found;
  found.count = route.count;
  std::vector<std::size_t> first_of_stage;
  std::vector<SampleInterval> samples;
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    first_of_stage.push_back(found.parts.size());
    for (const StagePart& part : find_parts(pipeline, StageId{s}, route.first, route.samples)) {
      found.parts.push_back({StageId{s}, part.device, part.samples.count()});
      samples.push_back(part.samples);
    }
  }
  first_of_stage.push_back(found.parts.size());
  for (std::size_t b = 0; b < table.boundaries.size(); ++b) {
    const auto [from, to] =
        std::pair(table.boundaries[b].from.index(), table.boundaries[b].to.index());
    for (std::size_t upper = first_of_stage[from]; upper < first_of_stage[from + 1]; ++upper) {
      for (std::size_t lower = first_of_stage[to]; lower < first_of_stage[to + 1]; ++lower) {
        const int common = std::min(samples[upper].end, samples[lower].end) -
                           std::max(samples[upper].first, samples[lower].first);
        if (common > 0) found.crossings.push_back({b, upper, lower, common});
      }
    }
  }
  return found;
}

}  // namespace

MicroBatchPricing::MicroBatchPricing(const Plan& plan, Setting setting)
    : plan_(plan),
      setting_(setting),
      activity_(find_activity(setting.profile(), plan)),
      fused_(is_fused(plan.schedule)) {}

Duration MicroBatchPricing::update(const StageEntry& stage, DeviceId device) const {
  return compute(stage, device, ActionKind::kUpdate, 1);
}

Duration MicroBatchPricing::overhead(DeviceId device) const {
  return setting_.cluster().devices.at(device.index()).step_overhead;
}

std::vector<MicroBatchClass> MicroBatchPricing::find_classes(PipelineId pipeline,
                                                             const PipelineTable& table) const {
  std::vector<MicroBatchClass> classes;
  const Pipeline& of = plan_.pipelines[pipeline.index()];
  for (const Route& route : count_routes(plan_, of)) {
    MicroBatchClass& found = classes.emplace_back(follow_route(of, table, route));
    found.times = find_times(table, found);
    found.path = find_path(table, found);
  }
  return classes;
}

Duration MicroBatchPricing::compute(const StageEntry& stage, DeviceId device, ActionKind kind,
                                    int samples) const {
  const auto parts = find_stage_parts(*stage.stage, kind, activity_);
  if (parts.empty() && kind != ActionKind::kForward) return kNoTime;
  return price(Compute{device, samples, parts}, setting_);
}

// Prices a backward that may run as B or as I and W at the cheaper way: B has the device's overhead
// once.
StageTimes MicroBatchPricing::stage_times(const StageEntry& stage, DeviceId device,
                                          int samples) const {
  const auto time = [&](ActionKind kind) { return compute(stage, device, kind, samples); };
  const Duration fused = time(ActionKind::kBackward);
  if (fused_) return {time(ActionKind::kForward), fused, kNoTime};
  const Duration input = time(ActionKind::kBackwardInput);
  return {time(ActionKind::kForward), input,
          std::min(time(ActionKind::kBackwardWeight), fused - input)};
}

Duration MicroBatchPricing::crossing(DeviceId from, DeviceId to, Bytes size) const {
  if (from == to) return kNoTime;
  const Link link = setting_.cluster().link(from, to);
  return size / link.bandwidth + link.latency;
}

MicroBatchTimes MicroBatchPricing::find_times(const PipelineTable& table,
                                              const MicroBatchClass& of) const {
  MicroBatchTimes times;
  for (const auto& [id, device, samples] : of.parts) {
    const StageEntry& stage = table.stages[id.index()];
    const bool again = stage.has_backward && stage.stage->memory == MemoryPolicy::kRecompute;
    times.parts.push_back(stage_times(stage, device, samples));
    times.recompute.push_back(again ? compute(stage, device, ActionKind::kRecompute, samples)
                                    : kNoTime);
  }
  for (const auto& [b, from, to, samples] : of.crossings) {
    const StageBoundary& boundary = table.boundaries[b];
    const DeviceId upper = of.parts[from].device;
    const DeviceId lower = of.parts[to].device;
    times.down.push_back(crossing(upper, lower, boundary.activation_per_sample * samples));
    times.up.push_back(crossing(lower, upper, boundary.gradient_per_sample * samples));
  }
  return times;
}

MicroBatchPath MicroBatchPricing::find_path(const PipelineTable& table,
                                            const MicroBatchClass& of) const {
  const MicroBatchTimes& times = of.times;
  const auto stage_of = [&](std::size_t part) -> const StageEntry& {
    return table.stages[of.parts[part].stage.index()];
  };
  MicroBatchPath path;
  for (std::size_t p = 0; p < of.parts.size(); ++p) {
    const DeviceId device = of.parts[p].device;
    path.head.push_back(overhead(device));
    path.after_input.push_back(stage_of(p).has_backward
                                   ? times.parts[p].backward_weight + update(stage_of(p), device)
                                   : kNoTime);
  }
  relax(of.crossings, [&](const RouteCrossing& cross, std::size_t c) {
    const auto [from, to] = std::pair(cross.from, cross.to);
    const StageTimes& sender = times.parts[from];
    bool grew = grow(path.head[to], path.head[from] + sender.forward + times.down[c]);
    if (table.boundaries[cross.boundary].carries) {
      grew |=
          grow(path.after_input[to], times.up[c] + sender.backward_input + path.after_input[from]);
    }
    return grew;
  });
  for (std::size_t p = 0; p < of.parts.size(); ++p) {
    path.after_forward.push_back(stage_of(p).has_backward
                                     ? times.recompute[p] + times.parts[p].backward_input +
                                           path.after_input[p]
                                     : kNoTime);
  }
  relax(of.crossings, [&](const RouteCrossing& cross, std::size_t c) {
    return grow(path.after_forward[cross.from],
                times.down[c] + times.parts[cross.to].forward + path.after_forward[cross.to]);
  });
  return path;
}

}  // namespace frazil
