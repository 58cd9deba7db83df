#pragma once
// Lower bounds on a step of each plan, for one setting. A bound is known if the plan is synchronous
// and each of its stages lies on one device, which no other pipeline uses; for other plans it is 0.
// It is the bound of planner/bounds/group_bound.h; for steps that read a cache also that of
// planner/bounds/order_times.h,
//   last work of a device + its reductions and updates
// which is exact on chains. The bounds also find plans that do not fit: those whose parameters,
// optimizer state and sets of gradients exceed the memory limit (capacity) of a device, for steps
// that read a cache together with the stash (saved activations). The time of reading the cache is
// not included.

#include <vector>

#include "planner/bounds/group_bound.h"
#include "planner/bounds/order_times.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

class StepBounds {
 public:
  // The profile, the cluster and the options must outlive this.
  StepBounds(const std::vector<Plan>& plans, Setting setting, const SearchOptions& options);
  StepBounds(const StepBounds&) = delete;
  StepBounds& operator=(const StepBounds&) = delete;

  struct Bound {
    Duration time{0};    // kFarAway (planner/trajectory/cheapest_walk.h): the plan does not fit
    bool exact = false;  // no step takes another time
  };
  // Returns the bound on steps of layers with these sums.
  Bound bound(std::size_t plan, const ChainSums& sums) const;
  // Adds to bound() what each device surely holds, and what follows its last work.
  Bound bound_by_order(std::size_t plan, const ChainSums& sums);

 private:
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

  Setting setting_;
  OrderTable orders_;
  DeviceGroupClasses device_classes_;
  SearchSpace space_;
  WorkBounds bounds_;
  std::vector<std::vector<PipelineClass>> classes_;  // by plan
};

}  // namespace frazil
