#include "planner/search/rankings/hybrid_starts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/partition/pipe_bd.h"

namespace frazil {
namespace {

std::optional<HybridPlan> find_hybrid(Setting setting, const SearchOptions& options) {
  const auto devices = static_cast<std::int64_t>(setting.cluster().devices.size());
  const auto units = static_cast<std::int64_t>(find_units(setting.profile()).size()) - 1;
  if (devices * units > kMostHybridCells || options.batch_size < devices) return std::nullopt;
  return find_hybrid_plan(measure_hybrid_with_memory(setting, options.mask, options.batch_size));
}

}  // namespace

std::vector<Plan> list_hybrid_starts(Setting setting, const SearchOptions& options) {
  const std::optional<HybridPlan> hybrid = find_hybrid(setting, options);
  if (!hybrid) return {};
  std::vector<Plan> starts;
  for (const int size : options.micro_batch_sizes) {
    const int count = options.batch_size / size;
    const bool is_even = options.batch_size % size == 0 &&
                         std::all_of(hybrid->groups.begin(), hybrid->groups.end(),
                                     [count](int group) { return count % group == 0; });
    if (!is_even) continue;
    Plan plan = make_hybrid_plan(*hybrid, setting.profile(), options.mask, options.batch_size);
    plan.micro_batch_size = size;
    plan.reduction = options.reduction;
    for (Pipeline& pipeline : plan.pipelines) {
      pipeline.micro_batches = {{MicroBatchId{0}, MicroBatchId{count - 1}}};
      for (Stage& stage : pipeline.stages) stage.axis = DeviceAxis::kData;
    }
    starts.push_back(std::move(plan));
  }
  return starts;
}

}  // namespace frazil
