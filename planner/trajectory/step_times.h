#pragma once
// What a step of each plan takes under each mask: simulated when asked for, once; until then no
// more than that is known, of plans that are synchronous, each stage on a device of its own: by
// planner/bounds/group_bound.h, and of steps that read a cache also by order_times.h there,
//   last work of a device + its reductions and updates
// which is exact on chains. A plan does not fit where parameters, optimizer state and sets of
// gradients do not; of steps that read a cache, where those and the stash do not. Reading what is
// cached takes no time here.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/bounds/group_bound.h"
#include "planner/bounds/order_times.h"
#include "planner/plan/plan.h"

namespace frazil {

class StepTimes {
 public:
  // All must outlive this.
  StepTimes(const std::vector<Plan>& plans, const std::vector<FreezeMask>& masks,
            const ModelProfile& profile, const Cluster& cluster, const SearchOptions& options);

  // kFarAway (planner/trajectory/cheapest_walk.h) where it does not fit or is refused.
  Duration exact(std::size_t mask, std::size_t plan);
  // The exact one where it is known, else no more than it.
  Duration known(std::size_t mask, std::size_t plan) const { return at(mask, plan).time; }

  // Whether layers [0, depth) may be cached: none trains, and all are in the first stage of every
  // pipeline.
  bool may_cache(std::size_t mask, std::size_t plan, int depth) const {
    return depth <= prefix_[mask] && depth <= first_stage_[plan];
  }
  // The same of a step where they are; kFarAway where they may not be.
  Duration exact(std::size_t mask, std::size_t plan, int depth);
  Duration known(std::size_t mask, std::size_t plan, int depth);
  // No more than a step takes where layers [0, depth) are, or fewer, even where more is known of
  // some. Requires: they may be.
  Duration least(std::size_t mask, std::size_t plan, int depth);

 private:
  struct Entry {
    Duration time{0};
    bool exact = false;
  };
  const Entry& at(std::size_t mask, std::size_t plan) const {
    return entries_[mask * plans_.size() + plan];
  }
  // A pipeline of a plan as the bound sees it; of those that are alike the first.
  struct PipelineClass {
    Shape shape;
    GroupClass group;
    std::vector<LayerSpan> spans;
    Cluster machine;
    Owners owners;
    int gradient_sets = 1;  // the most that one of them holds
  };

  std::vector<PipelineClass> list_classes(const Plan& plan) const;
  Cluster make_machine(const Pipeline& pipeline, const NamedSchedule& named) const;
  Entry bound(const std::vector<PipelineClass>& classes, const ChainSums& sums) const;
  Entry& cached_at(std::size_t mask, std::size_t plan, int depth);
  Entry bound_by_order(const std::vector<PipelineClass>& classes, const ChainSums& sums);
  const ChainSums& cached_sums(std::size_t mask, int size, int depth);
  Duration simulate(std::size_t mask, std::size_t plan, int depth) const;

  const std::vector<Plan>& plans_;
  const std::vector<FreezeMask>& masks_;
  const ModelProfile& profile_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  OrderTable orders_;
  DeviceGroupClasses machines_;
  SearchSpace space_;
  WorkBounds bounds_;
  std::vector<std::vector<PipelineClass>> classes_;  // by plan
  std::vector<Entry> entries_;                       // by (mask, plan)
  std::vector<Activity> activities_;                 // by mask
  std::vector<int> prefix_;                          // by mask: layers that may be cached
  std::vector<int> first_stage_;  // by plan: of those that all pipelines begin with
  std::vector<std::vector<std::optional<Entry>>> cached_;               // by (mask, plan), depth
  std::map<std::tuple<std::size_t, int, int>, ChainSums> cached_sums_;  // by (mask, size, depth)
};

}  // namespace frazil
