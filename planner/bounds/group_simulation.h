#pragma once
// Time and memory of a step of groups that share nothing but gradients, without simulating every
// group. Groups that are alike (same class, cuts, share) are simulated once, up to their last
// backwards; from there on reductions, exchanges of tied parameters and updates are added up as
// lower() (planner/lowering/lower.h) would connect them. The makespan, the peaks and whether costs
// are extrapolated are those of simulate_plan(), to the nanosecond and the byte. The method does
// not apply to reductions that overlap with backwards, nor where a group has no micro-batches or
// its two directions have unequal numbers.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "planner/bounds/order_times.h"
#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"
#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

struct GroupRun {
  std::vector<Duration> last_work;  // by device of the group: the end of its last F, I, W, B or R
  std::vector<MemoryPeak> memory;   // with the gradients of the group alone
  bool extrapolated = false;
  std::optional<std::string> refused;  // the sentence of the interpreter that refuses it
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
  // The profile, the cluster and the other arguments must outlive this.
  GroupSimulation(Setting setting, const Activity& activity, const SearchOptions& options,
                  const DeviceGroupClasses& device_classes, const SpaceSums& sums,
                  OrderTable& orders);

  // True if the method applies to this proposal; simulate() and at_least() require it.
  static bool applies(const Shape& shape, const Proposal& proposal, const SearchOptions& options);
  StepOutcome simulate(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups);

  // Returns a lower bound on what simulate() gives, from the order of work alone: on the makespan,
  // and on what the device that misses most memory holds, if one overflows. None if the schedule
  // refuses a group. A makespan above `most` is no higher than is needed to say so. Requires:
  // applies().
  struct Least {
    Duration makespan{0};
    std::optional<Infeasible> overflow;
  };
  std::optional<Least> at_least(const Shape& shape, const Proposal& proposal,
                                const DeviceGroups& groups, Duration most = kNever);
  // Returns the same and keeps nothing: for cuts that are asked for once.
  std::optional<Least> at_least_once(const Shape& shape, const Proposal& proposal,
                                     const DeviceGroups& groups, Duration most);

  int simulated() const { return simulated_; }  // groups, each once
  // Returns what was timed and simulated so far, in actions of a list of known order that is timed:
  // a list that has to be made for its times counts as price_of_order() says, a task graph
  // kTaskGraph-fold.
  std::int64_t actions() const { return actions_; }
  static constexpr std::int64_t kTaskGraph = 30;
  // Returns how many times as long as timing a list of known order it takes to make and time one.
  static std::int64_t price_of_order(ScheduleKind kind);

 private:
  using Key = std::tuple<int, int, bool, int, ShapeVariant, std::vector<LayerId>>;

  const GroupRun& run(const Shape& shape, const GroupClass& group);
  // Returns the times of the group's order. They are computed in the first call, under its `most`,
  // and kept: a later call with a larger `most` may get lower times than need be.
  const OrderTimes& time(const Shape& shape, const GroupClass& group, Duration most);
  Key key_of(const Shape& shape, const GroupClass& group) const;
  std::optional<Infeasible> find_class_overflow(const Proposal& proposal,
                                                const DeviceGroups& groups,
                                                const std::vector<const OrderTimes*>& times) const;
  Least add_up(const Shape& shape, const Proposal& proposal, const DeviceGroups& groups,
               const std::vector<const OrderTimes*>& times, Duration most) const;
  void set_tied(ReductionTail& tail, const Shape& shape, const Proposal& proposal,
                const DeviceGroups& groups) const;
  GroupRun run_anew(const Shape& shape, const GroupClass& group) const;

  Setting setting_;
  const Activity& activity_;
  const SearchOptions& options_;
  const DeviceGroupClasses& device_classes_;
  const SpaceSums& space_sums_;
  OrderTimer timer_;
  std::map<Key, OrderTimes> times_;
  std::map<Key, GroupRun> runs_;
  int simulated_ = 0;
  std::int64_t actions_ = 0;
};

}  // namespace frazil
