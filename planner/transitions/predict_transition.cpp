#include "planner/transitions/predict_transition.h"

#include <algorithm>

#include "planner/plan/activity.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

int cached_layers(const Plan& plan, const ModelProfile& profile) {
  return plan.cache_frozen_prefix ? find_activity(profile, plan).cached : 0;
}

}  // namespace

PredictedTransition predict_transition(const Plan& held, const Plan& next, Setting setting,
                                       const StepOptions& options,
                                       const TransitionOverhead& overhead) {
  const TransitionCost cost =
      price_transition(held, next, setting, find_activity(setting.profile(), held.mask), overhead);
  const Duration after = simulate_plan(next, setting, options).step_time;
  const Wide for_as_many = Wide{after.count()} * held.batch_size / next.batch_size;
  return {.saved_per_step = simulate_plan(held, setting, options).step_time -
                            Duration{static_cast<std::int64_t>(for_as_many)},
          .cost = cost.total};
}

Duration predict_fill(const Plan& held, const Plan& next, Setting setting,
                      const StepOptions& options) {
  const ModelProfile& profile = setting.profile();
  const int before = cached_layers(held, profile);
  const int after = cached_layers(next, profile);
  if (after <= before) return Duration{0};
  Plan uncached = next;
  uncached.cache_frozen_prefix = false;
  const Duration longer = simulate_plan(uncached, setting, options).step_time -
                          simulate_plan(next, setting, options).step_time;
  Wide run = 0;
  Wide all = 0;
  const Activity activity = find_activity(profile, next);
  for (int l = 0; l < after; ++l) {
    if (activity.is_idle(LayerId{l})) continue;
    const Layer& layer = profile.layers[static_cast<std::size_t>(l)];
    const std::int64_t time = cost_at(layer, next.micro_batch_size).cost.forward_frozen.count();
    all += time;
    if (l >= before) run += time;
  }
  if (all == 0 || longer <= Duration{0}) return Duration{0};
  return Duration{static_cast<std::int64_t>(longer.count() * run / all)};
}

}  // namespace frazil
