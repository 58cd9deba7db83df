#include "planner/trajectory/step_times.h"

#include <algorithm>
#include <map>

#include "planner/prediction/ranking.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/trajectory/cheapest_walk.h"
#include "profiles/error.h"

namespace frazil {

int count_first_layers(const Plan& plan, int layers) {
  int least = layers;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (auto stage = pipeline.stages.begin() + 1; stage != pipeline.stages.end(); ++stage) {
      for (const LayerRange& range : stage->layers) least = std::min(least, range.first.value);
    }
  }
  return least;
}

StepTimes::StepTimes(const std::vector<Plan>& plans, const std::vector<FreezeMask>& masks,
                     Setting setting, const SearchOptions& options)
    : StepTimes(plans, masks, std::vector<Setting>(masks.size(), setting), options) {}

StepTimes::StepTimes(const std::vector<Plan>& plans, const std::vector<FreezeMask>& masks,
                     const std::vector<Setting>& settings, const SearchOptions& options)
    : plans_(plans), masks_(masks), settings_(settings), options_(options) {
  ENSURE(!masks.empty() && settings.size() == masks.size(), "a setting for every mask");
  const auto layers = static_cast<int>(settings.front().profile().layers.size());
  for (const Plan& plan : plans_) first_stage_.push_back(count_first_layers(plan, layers));
  cached_.resize(masks_.size() * plans_.size());
  std::map<const ModelProfile*, std::shared_ptr<StepBounds>> bounds_of;
  for (std::size_t m = 0; m < masks_.size(); ++m) {
    const ModelProfile& profile = settings_[m].profile();
    std::shared_ptr<StepBounds>& bounds = bounds_of[&profile];
    if (!bounds) bounds = std::make_shared<StepBounds>(plans_, settings_[m], options_);
    bounds_.push_back(bounds);
    const Activity& activity = activities_.emplace_back(find_activity(profile, masks_[m]));
    prefix_.push_back(count_frozen_prefix(profile, activity));
    std::map<int, ChainSums> sums_of;
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      const int size = plans_[p].micro_batch_size;
      const auto sums = sums_of.try_emplace(size, profile, activity, size).first;
      // What bounds a step by itself does not bound a step of a window.
      entries_.push_back(plans_[p].steps_ahead > 0 ? Entry{simulate(m, p, 0), true}
                                                   : bounds->bound(p, sums->second));
    }
  }
}

Duration StepTimes::simulate(std::size_t mask, std::size_t plan, int depth) const {
  Plan masked = plans_[plan];
  masked.mask = masks_[mask];
  Activity activity = activities_[mask];
  activity.cached = depth;
  masked.cache_frozen_prefix = depth > 0 && depth == prefix_[mask];
  try {
    const StepOptions options{.clip = options_.clip, .overlap = options_.overlap};
    const SimulatedStep step = simulate_step(masked, activity, settings_[mask], options);
    const Simulation& alone = step.simulation;
    if (find_overflow(alone.memory, settings_[mask].cluster())) return kFarAway;
    const int window = depth > 0 ? 1 : count_window(masked, settings_[mask], options);
    return window == 1 ? alone.makespan : simulate_window(step, window, settings_[mask]).step_time;
  } catch (const InfeasibleError&) {
    return kFarAway;
  }
}

Duration StepTimes::exact(std::size_t mask, std::size_t plan) {
  Entry& entry = entries_[mask * plans_.size() + plan];
  if (!entry.exact) entry = {simulate(mask, plan, 0), true};
  return entry.time;
}

const ChainSums& StepTimes::cached_sums(std::size_t mask, int size, int depth) {
  const auto known = cached_sums_.find({mask, size, depth});
  if (known != cached_sums_.end()) return known->second;
  Activity activity = activities_[mask];
  activity.cached = depth;
  return cached_sums_
      .try_emplace(std::tuple(mask, size, depth), settings_[mask].profile(), activity, size)
      .first->second;
}

StepTimes::Entry& StepTimes::cached_at(std::size_t mask, std::size_t plan, int depth) {
  auto& by_depth = cached_[mask * plans_.size() + plan];
  if (by_depth.empty()) by_depth.resize(settings_[mask].profile().layers.size() + 1);
  std::optional<Entry>& entry = by_depth[static_cast<std::size_t>(depth)];
  if (entry) return *entry;
  if (!may_cache(mask, plan, depth)) return entry.emplace(Entry{kFarAway, true});
  const ChainSums& sums = cached_sums(mask, plans_[plan].micro_batch_size, depth);
  return entry.emplace(bounds_[mask]->bound_by_order(plan, sums));
}

Duration StepTimes::known(std::size_t mask, std::size_t plan, int depth) {
  return depth == 0 ? known(mask, plan) : cached_at(mask, plan, depth).time;
}

Duration StepTimes::least(std::size_t mask, std::size_t plan, int depth) {
  const Duration cached =
      bounds_[mask]
          ->bound_by_order(plan, cached_sums(mask, plans_[plan].micro_batch_size, depth))
          .time;
  return plans_[plan].steps_ahead > 0 ? std::min(cached, known(mask, plan)) : cached;
}

Duration StepTimes::exact(std::size_t mask, std::size_t plan, int depth) {
  if (depth == 0) return exact(mask, plan);
  Entry& entry = cached_at(mask, plan, depth);
  if (!entry.exact) entry = {simulate(mask, plan, depth), true};
  return entry.time;
}

}  // namespace frazil
