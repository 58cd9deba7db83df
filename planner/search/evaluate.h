#pragma once
// One shape, from its bound to its candidate: the first of its proposals (planner/search/propose.h)
// that an interpreter takes and that fits, else the last one with its reason.

#include <optional>
#include <variant>

#include "planner/ranking.h"
#include "planner/search/group_bound.h"
#include "planner/search/group_simulation.h"

namespace frazil {

// A shape that is not worth a plan, or what its plan would be.
struct Verdict {
  std::optional<Rejection> rejection;  // none: it runs and fits
  Duration makespan{0};
  std::vector<MemoryPeak> memory;  // by device of the cluster
  bool extrapolated = false;
  Proposal proposal;
};

class Evaluator {
 public:
  // All must outlive this.
  Evaluator(const ModelProfile& profile, const Cluster& cluster, const SearchOptions& options);

  const SearchSpace& space() const { return space_; }
  Machines& machines() { return machines_; }
  const WorkBounds& work_bounds() const { return bounds_; }
  const ChainSums& sums_of(int size) const { return proposer_.sums_of(size); }
  int simulated() const { return groups_.simulated() + simulated_; }

  // Of the plan that judge() would find; or the rejection that needs no simulation.
  std::variant<NamedBound, Rejection> bound(const Shape& shape);
  // Cheaper than bound(): from the shares of the groups alone.
  NamedBound bound_by_shares(const Shape& shape);
  // The same of a shape that bound() did not reject, from the order of its work; none where nothing
  // is known without a simulation.
  std::optional<std::variant<NamedBound, Rejection>> bound_by_order(const Shape& shape);
  // Each simulated as briefly as can be.
  Verdict judge(const Shape& shape);
  // The candidate of a verdict, with its plan; its bounds come apart.
  Candidate make_candidate(const Shape& shape, const Verdict& verdict);
  void add_bounds(Candidate& candidate) const;
  // By simulating whole plans alone: what judge() must agree with.
  Candidate judge_whole(const Shape& shape);

 private:
  NamedBound bound(const Shape& shape, const Proposal& proposal);
  StepOutcome simulate(const Shape& shape, const Proposal& proposal);
  Plan plan_of(const Shape& shape, const Proposal& proposal);

  const ModelProfile& profile_;
  const Cluster& cluster_;
  const SearchOptions& options_;
  Activity activity_;
  std::string hash_;
  std::vector<ChainSums> sums_;
  Machines machines_;
  SearchSpace space_;
  WorkBounds bounds_;
  Proposer proposer_;
  GroupSimulation groups_;
  int simulated_ = 0;
};

}  // namespace frazil
