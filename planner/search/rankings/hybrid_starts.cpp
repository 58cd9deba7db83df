#include "planner/search/rankings/hybrid_starts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/partition/pipe_bd.h"

namespace frazil {
namespace {

// The dynamic program asks for the cost of each run of blocks on each number of devices, which adds
// up its blocks, and then combines these.
bool is_within_effort(std::int64_t devices, std::int64_t units) {
  const double pairs = static_cast<double>(units) * static_cast<double>(units);
  const double effort = pairs * static_cast<double>(devices) * static_cast<double>(units + devices);
  return effort <= static_cast<double>(kMostHybridEffort);
}

// Pipe-BD's pipelines have no order of their own; these do all forwards before any backward, or as
// soon as they may.
std::optional<ScheduleKind> choose_schedule(const SearchOptions& options) {
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward}) {
    const auto& asked = options.schedules;
    if (std::find(asked.begin(), asked.end(), kind) != asked.end()) return kind;
  }
  return std::nullopt;
}

// What a group takes that the question does not allow: longer than any plan.
constexpr Duration kForbidden = std::chrono::hours(24 * 365);

void refuse_groups(HybridCosts& costs, int micro_batches, const SearchOptions& options) {
  for (int group = 2; group <= costs.devices; ++group) {
    const bool may = micro_batches % group == 0 && options.shared_effort > 0 &&
                     (options.max_replicas == 0 || group <= options.max_replicas);
    auto& steps = costs.step[static_cast<std::size_t>(group) - 1];
    if (!may) std::fill(steps.begin(), steps.end(), kForbidden);
  }
}

bool has_more_stages(const Plan& plan, int most) {
  return most > 0 && static_cast<int>(plan.pipelines.front().stages.size()) > most;
}

}  // namespace

std::vector<Plan> list_hybrid_starts(Setting setting, const SearchOptions& options) {
  const auto devices = static_cast<int>(setting.cluster().devices.size());
  const std::size_t units = find_units(setting.profile()).size() - 1;
  const std::optional<ScheduleKind> schedule = choose_schedule(options);
  if (devices < 2 || options.batch_size < devices || !schedule) return {};
  if (!is_within_effort(devices, static_cast<std::int64_t>(units))) return {};
  const HybridCosts all = measure_hybrid_with_memory(setting, options.mask, options.batch_size);
  std::vector<Plan> starts;
  for (const int size : options.micro_batch_sizes) {
    if (options.batch_size % size != 0) continue;
    const int count = options.batch_size / size;
    HybridCosts costs = all;
    refuse_groups(costs, count, options);
    const std::optional<HybridPlan> hybrid = find_hybrid_plan(costs);
    if (!hybrid || hybrid->cost >= kForbidden) continue;
    Plan plan = make_hybrid_plan(*hybrid, setting.profile(), options.mask, options.batch_size);
    if (has_more_stages(plan, options.max_stages)) continue;
    plan.micro_batch_size = size;
    plan.reduction = options.reduction;
    plan.schedule = NamedSchedule{.kind = *schedule, .in_flight = {}, .chunks = 1};
    for (Pipeline& pipeline : plan.pipelines) {
      pipeline.micro_batches = {{MicroBatchId{0}, MicroBatchId{count - 1}}};
      for (Stage& stage : pipeline.stages) stage.axis = DeviceAxis::kData;
    }
    starts.push_back(std::move(plan));
  }
  return starts;
}

}  // namespace frazil
