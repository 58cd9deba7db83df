#pragma once
// Says what a step of each plan takes under each mask, at the costs that the mask is priced by. A
// step is simulated, once, when its exact time is asked for. Until then a lower bound is known
// (step_bounds.h).

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/trajectory/step_bounds.h"
#include "profiles/setting.h"

namespace frazil {

// Returns how many layers lie in the first stage of each of the plan's pipelines, of a model with
// so many layers: no more of them can be cached.
int count_first_layers(const Plan& plan, int layers);

class StepTimes {
 public:
  // `settings`: by mask, that by which it is priced (priced_masks.h). Their profiles and clusters,
  // whose structure is that of one model, and the other arguments must outlive this.
  StepTimes(const std::vector<Plan>& plans, const std::vector<FreezeMask>& masks,
            const std::vector<Setting>& settings, const SearchOptions& options);
  // The same with one setting for all masks.
  StepTimes(const std::vector<Plan>& plans, const std::vector<FreezeMask>& masks, Setting setting,
            const SearchOptions& options);

  // Returns the simulated time; kFarAway (planner/trajectory/cheapest_walk.h) if the plan does not
  // fit or is refused.
  Duration exact(std::size_t mask, std::size_t plan);
  // Returns the exact time if it is known, else a lower bound.
  Duration known(std::size_t mask, std::size_t plan) const { return at(mask, plan).time; }

  // True if layers [0, depth) may be cached: none of them trains, and the first stage of every
  // pipeline has the whole frozen prefix. A run caches no part of a prefix that goes on in a later
  // stage (find_activity of planner/plan/activity.h refuses it).
  bool may_cache(std::size_t mask, std::size_t plan, int depth) const {
    return depth <= prefix_[mask] && prefix_[mask] <= first_stage_[plan];
  }
  // These are for a step in which layers [0, depth) are cached; kFarAway if they may not be.
  Duration exact(std::size_t mask, std::size_t plan, int depth);
  Duration known(std::size_t mask, std::size_t plan, int depth);
  // Returns a lower bound on steps in which layers [0, depth), or fewer, are cached; exact times
  // are not used even if some are known. Requires: may_cache(mask, plan, depth).
  Duration least(std::size_t mask, std::size_t plan, int depth);

 private:
  using Entry = StepBounds::Bound;

  const Entry& at(std::size_t mask, std::size_t plan) const {
    return entries_[mask * plans_.size() + plan];
  }
  Entry& cached_at(std::size_t mask, std::size_t plan, int depth);
  const ChainSums& cached_sums(std::size_t mask, int size, int depth);
  Duration simulate(std::size_t mask, std::size_t plan, int depth) const;

  const std::vector<Plan>& plans_;
  const std::vector<FreezeMask>& masks_;
  std::vector<Setting> settings_;  // by mask
  const SearchOptions& options_;
  std::vector<std::shared_ptr<StepBounds>> bounds_;  // by mask; those of one setting are one
  std::vector<Entry> entries_;                       // by (mask, plan)
  std::vector<Activity> activities_;                 // by mask
  std::vector<int> prefix_;                          // by mask: layers that may be cached
  std::vector<int> first_stage_;  // by plan: layers in the first stage of every pipeline
  std::vector<std::vector<std::optional<Entry>>> cached_;               // by (mask, plan), depth
  std::map<std::tuple<std::size_t, int, int>, ChainSums> cached_sums_;  // by (mask, size, depth)
};

}  // namespace frazil
