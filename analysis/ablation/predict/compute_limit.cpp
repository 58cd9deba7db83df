#include "analysis/ablation/predict/compute_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/prediction/answer_parts.h"
#include "planner/prediction/any_plan_bound.h"
#include "planner/trajectory/far_sums.h"
#include "planner/trajectory/priced_masks.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

// Returns a plan that stands for all plans on all devices: the bound reads its batch, micro-batch
// size, mask and cache, and how many devices it uses.
Plan make_stand_in(Setting setting, const SearchOptions& options, bool caches) {
  Plan plan;
  plan.batch_size = options.batch_size;
  plan.cache_frozen_prefix = caches;
  Stage all;
  all.layers = {{LayerId{0}, LayerId{setting.profile().layers.size() - 1}}};
  for (std::size_t d = 0; d < setting.cluster().devices.size(); ++d) all.devices.emplace_back(d);
  plan.pipelines = {{.stages = {all}, .micro_batches = {}}};
  return plan;
}

}  // namespace

Duration bound_training(Setting setting, const SearchOptions& options,
                        const std::vector<ForecastSegment>& segments, bool caches) {
  ENSURE(!options.micro_batch_sizes.empty(), "a micro-batch size to try");
  Plan plan = make_stand_in(setting, options, caches);
  const PricedMasks priced(setting, segments);
  Duration sum{0};
  for (std::size_t k = 0; k < segments.size(); ++k) {
    const Setting costs = priced.settings()[priced.of_segment(k)];
    plan.mask = segments[k].mask;
    Duration least = kFarAway;
    for (const int size : options.micro_batch_sizes) {
      plan.micro_batch_size = size;
      least = std::min(least, bound_any_plan(plan, costs).time);
    }
    sum = add(sum, times(least, segments[k].steps));
  }
  return sum;
}

std::optional<double> ComputeLimit::speed() const {
  if (!unfrozen || time == kNoTime) return std::nullopt;
  return static_cast<double>(unfrozen->count()) / static_cast<double>(time.count());
}

std::string tell_limit(const ComputeLimit& limit) {
  const auto speed = limit.speed();
  return fmt::format("limit by compute: {}{}; no plan takes less under the policy's masks on {}{}",
                     to_text(limit.time), speed ? fmt::format(", {:.4f} x unfrozen", *speed) : "",
                     count_of(limit.devices, "device"),
                     limit.caches ? ", were what is frozen cached at once and for nothing" : "");
}

}  // namespace frazil
