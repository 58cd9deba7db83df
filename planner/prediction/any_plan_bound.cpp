#include "planner/prediction/any_plan_bound.h"

#include <algorithm>
#include <vector>

#include "planner/lowering/stage_work.h"
#include "planner/plan/activity.h"
#include "planner/prediction/simplicity.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

// Returns the first of the fastest devices.
DeviceId find_fastest(const Cluster& cluster) {
  const auto fastest =
      std::min_element(cluster.devices.begin(), cluster.devices.end(),
                       [](const Device& a, const Device& b) { return a.time_ppm < b.time_ppm; });
  return DeviceId{static_cast<std::size_t>(fastest - cluster.devices.begin())};
}

// Returns the slowdowns of the fastest devices, as many as the plan uses, fastest first.
std::vector<std::int64_t> list_slowdowns(const Plan& plan, const Cluster& cluster) {
  std::vector<std::int64_t> slowdowns;
  for (const Device& device : cluster.devices) slowdowns.push_back(device.time_ppm);
  std::sort(slowdowns.begin(), slowdowns.end());
  slowdowns.resize(static_cast<std::size_t>(count_used_devices(plan)));
  return slowdowns;
}

// True if rounding down may make an action shorter than its share of the work. Where the fastest
// devices all run as profiled, no action of any device is shorter than that.
bool is_rounded(const Plan& plan, Setting setting) {
  const std::vector<std::int64_t> slowdowns = list_slowdowns(plan, setting.cluster());
  return std::any_of(slowdowns.begin(), slowdowns.end(),
                     [](std::int64_t ppm) { return ppm != kMillion; });
}

// Returns how much faster these devices are together than the fastest one alone, in millionths and
// rounded up.
std::int64_t add_up_speeds(const Plan& plan, const Cluster& cluster) {
  const std::vector<std::int64_t> slowdowns = list_slowdowns(plan, cluster);
  std::int64_t speeds = 0;
  for (const std::int64_t ppm : slowdowns) {
    speeds += divide_up(slowdowns.front() * kMillion, ppm);
  }
  return speeds;
}

// Returns the time of one micro-batch in all layers. A device's time is rounded down for each
// action; a plan with an action for each layer loses that much more than one action does.
Duration time_of_layers(const Plan& plan, Setting setting, ActionKind kind) {
  const std::size_t layers = setting.profile().layers.size();
  Stage all;
  all.layers = {{LayerId{0}, LayerId{layers - 1}}};
  const DeviceId fastest = find_fastest(setting.cluster());
  all.devices = {fastest};
  const Activity activity = find_activity(setting.profile(), plan);
  Compute work{fastest, plan.micro_batch_size, find_stage_parts(all, kind, activity), true};
  if (work.parts.empty()) return Duration{0};
  const Duration lost{is_rounded(plan, setting) ? static_cast<std::int64_t>(layers) : 0};
  return std::max(Duration{0}, price(Work{std::move(work)}, setting) - lost);
}

// Returns the time of one part of a layer, which is no more than what it adds to any action.
Duration time_of_part(const LayerWork& part, const Plan& plan, Setting setting) {
  const DeviceId fastest = find_fastest(setting.cluster());
  return price(Work{Compute{fastest, plan.micro_batch_size, {part}, true}}, setting);
}

// Returns the time of the longest path of one micro-batch over layers, whatever stages they make.
Duration find_longest_path(const Plan& plan, Setting setting) {
  const ModelProfile& profile = setting.profile();
  const Activity activity = find_activity(profile, plan);
  const std::size_t layers = profile.layers.size();
  std::vector<Duration> forward(layers, Duration{0});
  std::vector<Duration> input(layers, Duration{0});
  Stage all;
  all.layers = {{LayerId{0}, LayerId{layers - 1}}};
  all.devices = {find_fastest(setting.cluster())};
  for (const LayerWork& part : find_stage_parts(all, ActionKind::kForward, activity)) {
    const LayerWork frozen{part.layer, LayerPart::kForwardFrozen};
    forward[part.layer.index()] =
        std::min(time_of_part(part, plan, setting), time_of_part(frozen, plan, setting));
  }
  for (const LayerWork& part : find_stage_parts(all, ActionKind::kBackwardInput, activity)) {
    input[part.layer.index()] = time_of_part(part, plan, setting);
  }
  // Edges lead from a layer to a later one, so layers are in an order that all paths follow.
  std::vector<std::vector<const Edge*>> incoming(layers);
  std::vector<std::vector<const Edge*>> outgoing(layers);
  for (const Edge& edge : profile.edges) {
    incoming[edge.to.index()].push_back(&edge);
    outgoing[edge.from.index()].push_back(&edge);
  }
  std::vector<Duration> until(layers);  // the F of the layer ends no sooner
  Duration longest{0};
  for (std::size_t l = 0; l < layers; ++l) {
    until[l] = forward[l];
    for (const Edge* const edge : incoming[l]) {
      until[l] = std::max(until[l], until[edge->from.index()] + forward[l]);
    }
    longest = std::max(longest, until[l]);
  }
  std::vector<Duration> back(layers);  // the I of the layer ends no sooner
  for (std::size_t l = layers; l-- > 0;) {
    Duration before = until[l];
    for (const Edge* const edge : outgoing[l]) {
      const bool carries = edge->kind == EdgeKind::kGradient && input[edge->to.index()].count() > 0;
      if (carries) before = std::max(before, back[edge->to.index()]);
    }
    back[l] = before + input[l];
    longest = std::max(longest, back[l]);
  }
  return longest;
}

}  // namespace

LowerBound bound_any_plan(const Plan& plan, Setting setting) {
  const Duration forward = time_of_layers(plan, setting, ActionKind::kForward);
  const Duration input = time_of_layers(plan, setting, ActionKind::kBackwardInput);
  const Duration weight = time_of_layers(plan, setting, ActionKind::kBackwardWeight);
  __extension__ using Wide = __int128;
  const Wide whole = plan.batch_size / plan.micro_batch_size;
  const Wide speeds = add_up_speeds(plan, setting.cluster());
  const Wide work = whole * (forward + input + weight).count() * kMillion;
  const Duration shared{static_cast<std::int64_t>((work + speeds - 1) / speeds)};
  const Duration path = whole > 0 ? find_longest_path(plan, setting) : Duration{0};
  if (path > shared) return {path, "one-micro-batch"};
  return {shared, "total-work"};
}

}  // namespace frazil
