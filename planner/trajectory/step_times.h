#pragma once
// What a step of each plan takes under each mask: simulated when asked for, once; until then no
// more than that is known, by planner/search/group_bound.h for plans that it covers: synchronous,
// each stage on a device of its own. A plan does not fit where parameters, gradients and optimizer
// state alone do not.

#include <vector>

#include "planner/plan.h"
#include "planner/search/group_bound.h"

namespace frazil {

class StepTimes {
 public:
  // All must outlive this.
  StepTimes(const std::vector<Plan>& plans, const std::vector<FreezeMask>& masks,
            const ModelProfile& profile, const Cluster& cluster, const SearchOptions& options);

  // kNever (planner/trajectory/trajectory.h) where it does not fit or is refused.
  Duration exact(std::size_t mask, std::size_t plan);
  // The exact one where it is known, else no more than it.
  Duration known(std::size_t mask, std::size_t plan) const { return at(mask, plan).time; }

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
  };

  std::vector<PipelineClass> list_classes(const Plan& plan) const;
  Cluster make_machine(const Pipeline& pipeline, const NamedSchedule& named) const;
  bool surely_overflows(const Plan& plan, const ChainSums& sums) const;
  Entry bound(const Plan& plan, const std::vector<PipelineClass>& classes,
              const ChainSums& sums) const;
  Duration simulate(std::size_t mask, std::size_t plan) const;

  const std::vector<Plan>& plans_;
  const std::vector<FreezeMask>& masks_;
  const ModelProfile& profile_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  Machines machines_;
  SearchSpace space_;
  WorkBounds bounds_;
  std::vector<Entry> entries_;  // by (mask, plan)
};

}  // namespace frazil
