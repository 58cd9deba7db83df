#pragma once
// Says what a step of each plan takes under each mask. A step is simulated, once, when its exact
// time is asked for. Until then a lower bound is known if the plan is synchronous and each of its
// stages lies on one device, which no other pipeline uses; for other plans the bound is 0. It is
// the bound of planner/bounds/group_bound.h; for steps that read a cache also that of
// planner/bounds/order_times.h,
//   last work of a device + its reductions and updates
// which is exact on chains. The bounds also find plans that do not fit: those whose parameters,
// optimizer state and sets of gradients exceed the memory limit (capacity) of a device, for steps
// that read a cache together with the stash (saved activations). The time of reading the cache is
// not included.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/bounds/group_bound.h"
#include "planner/bounds/order_times.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Returns how many layers lie in the first stage of each of the plan's pipelines, of a model with
// so many layers: no more of them can be cached.
int count_first_layers(const Plan& plan, int layers);

class StepTimes {
 public:
  // The profile, the cluster and the other arguments must outlive this.
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
  struct Entry {
    Duration time{0};
    bool exact = false;
  };
  const Entry& at(std::size_t mask, std::size_t plan) const {
    return entries_[mask * plans_.size() + plan];
  }
  // A pipeline of a plan as the bound sees it; the first stands for all that are alike.
  struct PipelineClass {
    Shape shape;
    GroupClass group;
    std::vector<LayerSpan> spans;
    Cluster cluster;
    Owners owners;
    int gradient_sets = 1;  // the most that a pipeline of the class holds
  };

  std::vector<PipelineClass> list_classes(const Plan& plan) const;
  Cluster make_group_cluster(const Pipeline& pipeline, const NamedSchedule& named) const;
  Entry bound(const std::vector<PipelineClass>& classes, const ChainSums& sums) const;
  Entry& cached_at(std::size_t mask, std::size_t plan, int depth);
  Entry bound_by_order(const std::vector<PipelineClass>& classes, const ChainSums& sums);
  const ChainSums& cached_sums(std::size_t mask, int size, int depth);
  Duration simulate(std::size_t mask, std::size_t plan, int depth) const;

  const std::vector<Plan>& plans_;
  const std::vector<FreezeMask>& masks_;
  Setting setting_;
  const SearchOptions& options_;
  OrderTable orders_;
  DeviceGroupClasses device_classes_;
  SearchSpace space_;
  WorkBounds bounds_;
  std::vector<std::vector<PipelineClass>> classes_;  // by plan
  std::vector<Entry> entries_;                       // by (mask, plan)
  std::vector<Activity> activities_;                 // by mask
  std::vector<int> prefix_;                          // by mask: layers that may be cached
  std::vector<int> first_stage_;  // by plan: layers in the first stage of every pipeline
  std::vector<std::vector<std::optional<Entry>>> cached_;               // by (mask, plan), depth
  std::map<std::tuple<std::size_t, int, int>, ChainSums> cached_sums_;  // by (mask, size, depth)
};

}  // namespace frazil
