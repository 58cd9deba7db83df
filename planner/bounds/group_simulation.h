#pragma once
// A step of groups that share nothing but gradients, without simulating each: groups that are alike
// (same machine, cuts, share) are simulated once, up to their last backwards; from there on
// reductions, exchanges of tied parameters and updates are added up as lower() would connect them.
// The makespan, the peaks and whether costs are extrapolated are those of simulate_plan(), to the
// nanosecond and the byte. Not for reductions that overlap with backwards, and not where a group
// has no micro-batches or its two directions unequal ones.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "planner/bounds/order_times.h"
#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"
#include "planner/prediction/ranking.h"

namespace frazil {

struct GroupRun {
  std::vector<Duration> last_work;  // by device of the machine: the end of its last F, I, W, B or R
  std::vector<MemoryPeak> memory;   // with the gradients of the group alone
  bool extrapolated = false;
  std::optional<std::string> refused;  // by an interpreter, in its sentence
};

struct StepOutcome {
  Duration makespan{0};
  std::vector<MemoryPeak> memory;  // by device of the cluster
  bool extrapolated = false;
  std::optional<std::string> refused;
};

class ReductionTail;

class GroupSimulation {
 public:
  // All must outlive this.
  GroupSimulation(const ModelProfile& profile, const Cluster& cluster, const Activity& activity,
                  const SearchOptions& options, const DeviceGroupClasses& machines,
                  const SpaceSums& sums, OrderTable& orders);

  static bool applies(const Shape& shape, const Proposal& proposal, const SearchOptions& options);
  StepOutcome simulate(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups);

  // Without a simulation, from the order of work alone: no more than what simulate() gives, held by
  // the device that misses most; none where the schedule refuses a group. Above `most` the time is
  // no higher than is needed to say so. Requires: it applies.
  struct Least {
    Duration makespan{0};
    std::optional<Infeasible> overflow;
  };
  std::optional<Least> at_least(const Shape& shape, const Proposal& proposal,
                                const DeviceGroups& groups, Duration most = Duration::max());

  int simulated() const { return simulated_; }  // groups, each once

 private:
  using Key = std::tuple<int, int, bool, int, ShapeVariant, std::vector<LayerId>>;

  const GroupRun& run(const Shape& shape, const GroupClass& group);
  // Known from a call before, with less than all where that was above the `most` of then, else
  // asked.
  const OrderTimes& time(const Shape& shape, const GroupClass& group, Duration most);
  Key key_of(const Shape& shape, const GroupClass& group) const;
  void set_tied(ReductionTail& tail, const Shape& shape, const Proposal& proposal,
                const DeviceGroups& groups) const;
  GroupRun run_anew(const Shape& shape, const GroupClass& group) const;

  const ModelProfile& profile_;
  const Cluster& cluster_;
  const Activity& activity_;
  const SearchOptions& options_;
  const DeviceGroupClasses& machines_;
  const SpaceSums& space_sums_;
  OrderTimer timer_;
  std::map<Key, OrderTimes> times_;
  std::map<Key, GroupRun> runs_;
  int simulated_ = 0;
};

}  // namespace frazil
