#include "exec/profile/step_end.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/ratio_interval.h"
#include "planner/plan/activity.h"
#include "planner/plan/reduction_groups.h"
#include "sim/collective_cost.h"

namespace frazil {
namespace {

// Returns the time from the last start of such an action to the last end; none if there is none.
// Clocks of two hosts may differ by more than a short wait.
std::optional<Duration> find_wait(std::span<const Span> spans, ActionKind kind) {
  std::optional<TimePoint> start;
  TimePoint end{};
  for (const Span& span : spans) {
    if (span.action.kind != kind) continue;
    start = std::max(start.value_or(span.start), span.start);
    end = std::max(end, span.end);
  }
  if (!start) return std::nullopt;
  return std::max(Duration{0}, end - *start);
}

void add(std::optional<Duration> wait, std::vector<double>& waits) {
  if (wait) waits.push_back(static_cast<double>(wait->count()));
}

Duration mean_of(const std::vector<double>& waits, double keep) {
  return Duration{waits.empty() ? 0 : static_cast<Duration::rep>(trimmed_mean(waits, keep))};
}

std::optional<Duration> find_delay(std::span<const Span> spans) {
  std::map<DeviceId, TimePoint> starts;
  for (const Span& span : spans) {
    const auto [known, is_new] = starts.try_emplace(span.device, span.start);
    if (!is_new) known->second = std::min(known->second, span.start);
  }
  if (starts.empty()) return std::nullopt;
  const auto [first, last] = std::minmax_element(
      starts.begin(), starts.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  return last->second - first->second;
}

}  // namespace

void StepEndMeter::add_step(std::span<const Span> spans) {
  add(find_wait(spans, ActionKind::kReduceGradients), reductions_);
  add(find_wait(spans, ActionKind::kBarrier), rounds_);
  add(find_delay(spans), starts_);
}

Duration StepEndMeter::reduction() const { return mean_of(reductions_, keep_); }

Duration StepEndMeter::commit_round() const { return mean_of(rounds_, keep_); }

Duration StepEndMeter::hand_out() const { return mean_of(starts_, keep_); }

BytesPerSecond find_reduction_bandwidth(Duration time, const Plan& plan,
                                        const ModelProfile& structure, Duration latency) {
  // Faster than this is not told from no time at all.
  constexpr double kMost = 1e15;
  std::int32_t devices = 1;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for (const DeviceId device : stage.devices) devices = std::max(devices, device.value + 1);
    }
  }
  const Cluster free_links = make_uniform_cluster(devices, Bytes{}, {});
  double bytes = 0;
  Duration hops{0};
  for (const ReductionGroup& group :
       find_reduction_groups(plan, structure, find_activity(structure, plan))) {
    const CollectiveCost cost = collective_cost(group.collective, free_links);
    bytes += static_cast<double>(cost.sent_by_busiest.count);
    hops += cost.steps * latency;
  }
  if (bytes == 0) return {};
  const double moving = std::max(1.0, static_cast<double>((time - hops).count()));
  return BytesPerSecond{static_cast<std::int64_t>(std::min(kMost, bytes / moving * 1e9))};
}

}  // namespace frazil
