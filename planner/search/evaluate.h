#pragma once
// Judges one shape, from its bound to its candidate: the fastest of its proposals
// (planner/search/propose.h) that the interpreter takes and that fits, else the proposal that
// misses least, with its reason.

#include <map>
#include <optional>
#include <tuple>
#include <variant>

#include "planner/bounds/group_bound.h"
#include "planner/bounds/group_simulation.h"
#include "planner/bounds/stage_limits.h"
#include "planner/prediction/ranking.h"
#include "planner/search/propose.h"
#include "profiles/setting.h"

namespace frazil {

// Why a shape is rejected, or what its plan would be.
struct Verdict {
  std::optional<Rejection> rejection;  // none: it runs and fits
  Duration makespan{0};
  std::vector<MemoryPeak> memory;  // by device of the cluster
  bool extrapolated = false;
  Proposal proposal;
};

class Evaluator {
 public:
  // The profile, the cluster and the other arguments must outlive this.
  Evaluator(Setting setting, const SearchOptions& options, OrderTable& orders);

  Setting setting() const { return setting_; }
  const SearchSpace& space() const { return space_; }
  DeviceGroupClasses& device_classes() { return device_classes_; }
  const WorkBounds& work_bounds() const { return bounds_; }
  // Returns the chain sums of plans that cache the prefix, or of plans that do not.
  const ChainSums& sums_of(int size, bool cached) const { return sums_.of(size, cached); }
  // Returns chain sums that are no more than those of any plan.
  const ChainSums& sums_of(int size) const { return sums_of(size, space_.cached > 0); }
  std::int64_t actions() const { return groups_.actions(); }  // see GroupSimulation
  int simulated() const { return groups_.simulated() + simulated_; }

  // Returns a lower bound on the plan that judge() would find, or a rejection that needs no
  // simulation.
  std::variant<NamedBound, Rejection> bound(const Shape& shape);
  // True if the devices of some group together have too little memory, whatever the cuts.
  bool is_hopeless(const Shape& shape);
  // Returns a lower bound that is cheaper than bound(), from the shares of the groups alone.
  NamedBound bound_by_shares(const Shape& shape);
  // Returns what bound() does, from the order of work, for a shape that bound() did not reject;
  // none if nothing is known without a simulation. A bound above `most` is no higher than is needed
  // to say so.
  std::optional<std::variant<NamedBound, Rejection>> bound_by_order(const Shape& shape,
                                                                    Duration most = kNever);
  // Simulates the proposals of a shape, each as briefly as can be, and returns the verdict on the
  // best one.
  Verdict judge(const Shape& shape);
  // Return what a search for other cuts starts from: the deal of a shape, its proposals, and for
  // each class of its groups what one stage takes at least.
  const Proposal& deal(const Shape& shape) { return proposer_.deal(shape); }
  std::vector<Proposal> propose(const Shape& shape) { return proposer_.propose(shape); }
  std::vector<StageLimits> limit_stages(const Shape& shape, const Proposal& proposal) const;
  // Judges a proposal with any cuts; none if it takes `below` or more, does not fit or is refused.
  std::optional<Verdict> judge_below(const Shape& shape, const Proposal& proposal, Duration below);
  // Makes the candidate of a verdict, with its plan but without its bounds, which add_bounds()
  // adds.
  Candidate make_candidate(const Shape& shape, const Verdict& verdict);
  void add_bounds(Candidate& candidate) const;
  // Judges a plan, which may be none of the search's, under the search's mask; add_bounds() adds
  // its bounds.
  Candidate judge_given(Plan plan);
  // Judges a shape by simulating whole plans alone: what judge() must agree with.
  Candidate judge_whole(const Shape& shape);

 private:
  // The key is what decides the loads of a group: size, device class, whole micro-batches,
  // placement, whether backwards split, R everywhere or everywhere but last, a cached prefix,
  // owners, cuts.
  using LoadKey =
      std::tuple<int, int, int, Placement, bool, bool, bool, bool, int, int, std::vector<LayerId>>;

  bool is_slower(const Shape& shape, const Proposal& proposal, Duration makespan);
  std::optional<Rejection> surely_misses(const Shape& shape, const Proposal& proposal);
  Verdict judge(const Shape& shape, Proposal proposal);
  NamedBound bound(const Shape& shape, const Proposal& proposal);
  Duration bound_by_stages(const Shape& shape, const Proposal& proposal) const;
  const GroupLoads& loads_of(const Shape& shape, const GroupClass& group, const Owners& owners);
  StepOutcome simulate(const Shape& shape, const Proposal& proposal);
  StepOutcome simulate_whole(const Plan& plan);
  Plan plan_of(const Shape& shape, const Proposal& proposal);
  bool offers(const Shape& shape) const;
  std::optional<StepOutcome> simulate_by_groups(const Plan& plan);

  Setting setting_;
  const SearchOptions& options_;
  Activity activity_;
  std::string hash_;
  DeviceGroupClasses device_classes_;
  SearchSpace space_;
  SpaceSums sums_;
  WorkBounds bounds_;
  Proposer proposer_;
  GroupSimulation groups_;
  std::map<LoadKey, GroupLoads> loads_;
  // Bounds by all that bound_by_shares() depends on.
  std::map<std::tuple<ShapeCell, VariantClass, BatchDeal, int>, NamedBound> by_shares_;
  int simulated_ = 0;
};

}  // namespace frazil
