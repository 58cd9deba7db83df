#include "planner/reproduce/own_plans/timed_walk.h"

#include <algorithm>
#include <set>

#include "planner/prediction/ranking.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/elastic_run.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Returns how many rings of all-reduces share a host's adapter: one for each device of a pipeline,
// if there is another pipeline to reduce with.
int count_rings(const Plan& plan) {
  std::set<DeviceId> devices;
  for (const Stage& stage : plan.pipelines.front().stages) {
    devices.insert(stage.devices.begin(), stage.devices.end());
  }
  return plan.pipelines.size() > 1 ? static_cast<int>(devices.size()) : 1;
}

struct DeviceWork {
  Duration passes{0};
  Duration updates{0};
};

DeviceWork find_busiest(const SimulatedStep& step, std::size_t devices) {
  const TaskGraph& graph = step.lowered.graph;
  std::vector<DeviceWork> works(devices);
  for (TaskId task = 0; task < step.lowered.actions.size(); ++task) {
    const auto& [device, lane] = graph.lanes()[graph.lane_of()[task]];
    if (lane != Lane::kCompute) continue;
    DeviceWork& work = works[device.index()];
    const bool is_update = step.lowered.actions[task].kind == ActionKind::kUpdate;
    (is_update ? work.updates : work.passes) +=
        step.simulation.end[task] - step.simulation.start[task];
  }
  return *std::max_element(
      works.begin(), works.end(),
      [](const DeviceWork& a, const DeviceWork& b) { return a.passes < b.passes; });
}

// Splits one step that reads some features and writes others, each of depth 0 for none.
TimeParts time_cached_step(const OwnTraining& training, const HeldSegment& held, HeldFeatures read,
                           HeldFeatures written) {
  TimeParts parts = time_step(training, held.plan, held.segment.mask, read.depth);
  const Duration reading = time_features(training, held.plan, read);
  parts.reading = std::max(kNoTime, reading - parts.total());
  parts.writing = time_features(training, held.plan, written);
  return parts;
}

}  // namespace

Duration TimeParts::total() const {
  return compute + updates + waits + reading + writing + transitions + start;
}

TimeParts& TimeParts::operator+=(const TimeParts& more) {
  compute += more.compute;
  updates += more.updates;
  waits += more.waits;
  reading += more.reading;
  writing += more.writing;
  transitions += more.transitions;
  start += more.start;
  return *this;
}

TimeParts operator*(TimeParts parts, Step steps) {
  parts.compute *= steps;
  parts.updates *= steps;
  parts.waits *= steps;
  parts.reading *= steps;
  parts.writing *= steps;
  parts.transitions *= steps;
  parts.start *= steps;
  return parts;
}

TimeParts time_step(const OwnTraining& training, const Plan& plan, const FreezeMask& mask,
                    int depth) {
  Plan masked = plan;
  masked.mask = mask;
  Activity activity = find_activity(training.profile, mask);
  masked.cache_frozen_prefix =
      depth > 0 && depth == count_frozen_prefix(training.profile, activity);
  activity.cached = depth;
  const Cluster cluster = make_own_cluster(training, count_rings(plan));
  const SearchOptions asked = search_options(training);
  const SimulatedStep step = simulate_step(masked, activity, {training.profile, cluster},
                                           {.clip = asked.clip, .overlap = asked.overlap});
  refuse_overflow(step.simulation.memory, cluster);
  const DeviceWork busiest = find_busiest(step, cluster.devices.size());
  const Duration waits = step.simulation.makespan - busiest.passes - busiest.updates;
  return {.compute = busiest.passes, .updates = busiest.updates, .waits = waits};
}

Duration time_features(const OwnTraining& training, const Plan& plan, HeldFeatures features) {
  if (features.depth == 0) return kNoTime;
  const auto of_sample = find_feature_bytes(training.profile, features.depth);
  ENSURE(of_sample.has_value(), "features of some layers");
  return transfer_time(make_own_store(training).tier(features.tier), *of_sample, plan);
}

Duration time_transition(const OwnTraining& training, const Plan& from, const Plan& to,
                         const FreezeMask& trained) {
  const Cluster cluster = make_own_cluster(training, 1);
  const Activity activity = find_activity(training.profile, trained);
  return price_transition(from, to, {training.profile, cluster}, activity, own_overhead()).total;
}

TimeParts time_walk(const OwnTraining& training, const std::vector<HeldSegment>& walk) {
  TimeParts parts;
  parts.start = start_time();
  for (std::size_t k = 0; k < walk.size(); ++k) {
    const HeldSegment& held = walk[k];
    if (k > 0 && !(walk[k - 1].plan == held.plan)) {
      parts.transitions +=
          time_transition(training, walk[k - 1].plan, held.plan, walk[k - 1].segment.mask);
    }
    const Step fills = std::min(held.cache.left, held.segment.steps);
    if (fills > 0) {
      parts += time_cached_step(training, held, held.cache.source, held.cache.features) * fills;
    }
    if (fills < held.segment.steps) {
      parts +=
          time_cached_step(training, held, held.cache.features, {}) * (held.segment.steps - fills);
    }
  }
  return parts;
}

}  // namespace frazil
