#include "planner/bounds/group_simulation.h"

#include <algorithm>

#include "planner/actions/schedule.h"
#include "planner/bounds/alike_tail.h"
#include "planner/bounds/reduction_tail.h"
#include "planner/plan/reduction_groups.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

// Removes reductions and updates: groups do them together, and ReductionTail adds them.
void drop_joint_actions(Schedule& schedule) {
  for (std::vector<Action>& list : schedule.devices) {
    std::erase_if(list, [](const Action& action) {
      return action.kind == ActionKind::kReduceGradients || action.kind == ActionKind::kUpdate;
    });
  }
}

std::vector<Duration> find_last_work(const LoweredStep& step, const Simulation& simulation,
                                     std::size_t devices) {
  std::vector<Duration> last(devices, Duration{0});
  const TaskGraph& graph = step.graph;
  for (TaskId task = 0; task < static_cast<TaskId>(graph.size()); ++task) {
    const auto& lane = graph.lanes()[graph.lane_of()[task]];
    if (lane.lane != Lane::kCompute) continue;
    Duration& end = last[lane.device.index()];
    end = std::max(end, simulation.end[task].time_since_epoch());
  }
  return last;
}

Bytes& held_of(MemoryPeak& peak, MemoryKind kind) {
  return peak.held[static_cast<std::size_t>(kind)];
}

Bytes held_throughout(MemoryPeak& peak) {
  return held_of(peak, MemoryKind::kParameters) + held_of(peak, MemoryKind::kGradients) +
         held_of(peak, MemoryKind::kOptimizer);
}

// Makes `peak` that of a reduction, which takes `reducing` bytes while only the state is held.
void reach_peak(MemoryPeak& peak, TimePoint at, Bytes reducing) {
  peak.total = held_throughout(peak) + reducing;
  peak.at = at;
  held_of(peak, MemoryKind::kGradients) += reducing;
  for (const MemoryKind kind : {MemoryKind::kStash, MemoryKind::kReceive, MemoryKind::kCache}) {
    held_of(peak, kind) = Bytes{};
  }
}

}  // namespace

GroupSimulation::GroupSimulation(Setting setting, const Activity& activity,
                                 const SearchOptions& options,
                                 const DeviceGroupClasses& device_classes, const SpaceSums& sums,
                                 OrderTable& orders)
    : setting_(setting),
      activity_(activity),
      options_(options),
      device_classes_(device_classes),
      space_sums_(sums),
      timer_(setting.profile(), device_classes, sums, options, orders) {}

bool GroupSimulation::applies(const Shape& shape, const Proposal& proposal,
                              const SearchOptions& options) {
  const int ways = directions(facts_of(shape.variant.schedule).placement);
  return !options.overlap && std::all_of(proposal.classes.begin(), proposal.classes.end(),
                                         [&](const GroupClass& group) {
                                           return group.share >= ways && group.share % ways == 0;
                                         });
}

// Measured on random times. The generators of linear orders try all of their variants
// (planner/orders/zero_bubble_orders.h), while most sweeps over a wave end early.
std::int64_t GroupSimulation::price_of_order(ScheduleKind kind) {
  constexpr std::int64_t kMadeLine = 40;
  constexpr std::int64_t kMadeWave = 8;
  const ScheduleFacts& facts = facts_of(kind);
  if (!facts.needs_costs) return 1;
  return facts.placement == Placement::kLinear ? kMadeLine : kMadeWave;
}

GroupRun GroupSimulation::run_anew(const Shape& shape, const GroupClass& group) const {
  const ModelProfile& profile = setting_.profile();
  const Cluster& group_cluster = device_classes_.cluster(group.device_class);
  const Setting of_group{profile, group_cluster};
  const auto layers = static_cast<int>(profile.layers.size());
  GroupRun result;
  try {
    const Plan plan = make_group_plan(shape, group, group_cluster, options_, layers);
    const Activity activity = find_activity(profile, plan);
    const auto devices = static_cast<int>(group_cluster.devices.size());
    const Schedule compute = make_schedule(plan, devices, of_group);
    Schedule completed = complete_schedule(compute, plan, profile, activity);
    drop_joint_actions(completed);
    const LoweredStep step = lower(plan, completed, of_group, activity);
    Simulation simulation = frazil::simulate(step.graph, of_group);
    result.last_work = find_last_work(step, simulation, group_cluster.devices.size());
    result.memory = std::move(simulation.memory);
    result.extrapolated = simulation.extrapolated;
  } catch (const InfeasibleError& error) {
    result.refused = error.what();
  }
  return result;
}

GroupSimulation::Key GroupSimulation::key_of(const Shape& shape, const GroupClass& group) const {
  ShapeVariant variant = shape.variant;
  variant.arrangement = 0;
  return {group.device_class,          group.share, group.has_short,
          shape.cell.micro_batch_size, variant,     group.cuts};
}

const GroupRun& GroupSimulation::run(const Shape& shape, const GroupClass& group) {
  const auto [known, is_new] = runs_.try_emplace(key_of(shape, group));
  if (is_new) {
    ++simulated_;
    actions_ += count_actions(shape, group) * kTaskGraph;
    known->second = run_anew(shape, group);
  }
  return known->second;
}

const OrderTimes& GroupSimulation::time(const Shape& shape, const GroupClass& group,
                                        Duration most) {
  const auto [known, is_new] = times_.try_emplace(key_of(shape, group));
  if (is_new) {
    actions_ += count_actions(shape, group) * price_of_order(shape.variant.schedule);
    known->second = timer_.time(shape, group, most);
  }
  return known->second;
}

void GroupSimulation::set_tied(ReductionTail& tail, const Shape& shape, const Proposal& proposal,
                               const DeviceGroups& groups) const {
  if (setting_.profile().tied.empty()) return;
  const auto layers = static_cast<int>(setting_.profile().layers.size());
  tail.set_tied(make_plan(shape, proposal, groups, options_, layers), setting_.profile(),
                activity_);
}

std::optional<GroupSimulation::Least> GroupSimulation::at_least(const Shape& shape,
                                                                const Proposal& proposal,
                                                                const DeviceGroups& groups,
                                                                Duration most) {
  std::vector<const OrderTimes*> times;
  for (const GroupClass& group : proposal.classes) {
    times.push_back(&time(shape, group, most));
    if (!times.back()->known) return std::nullopt;
  }
  return add_up(shape, proposal, groups, times, most);
}

std::optional<GroupSimulation::Least> GroupSimulation::at_least_once(const Shape& shape,
                                                                     const Proposal& proposal,
                                                                     const DeviceGroups& groups,
                                                                     Duration most) {
  std::vector<OrderTimes> times;
  std::vector<const OrderTimes*> of_classes;
  times.reserve(proposal.classes.size());
  for (const GroupClass& group : proposal.classes) {
    times.push_back(timer_.time(shape, group, most));
    if (!times.back().known) return std::nullopt;
    of_classes.push_back(&times.back());
  }
  return add_up(shape, proposal, groups, of_classes, most);
}

// Returns the device of the groups that misses most memory; none if all have enough.
std::optional<Infeasible> GroupSimulation::find_class_overflow(
    const Proposal& proposal, const DeviceGroups& groups,
    const std::vector<const OrderTimes*>& times) const {
  bool fits = true;
  for (std::size_t c = 0; c < times.size() && fits; ++c) {
    const Cluster& devices = device_classes_.cluster(proposal.classes[c].device_class);
    for (std::size_t d = 0; d < times[c]->held.size(); ++d) {
      fits = fits && times[c]->held[d] <= devices.devices[d].memory_limit;
    }
  }
  if (fits) return std::nullopt;
  std::vector<MemoryPeak> memory(setting_.cluster().devices.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const OrderTimes& own = *times[static_cast<std::size_t>(proposal.class_of[g])];
    for (std::size_t d = 0; d < groups[g].devices.size(); ++d) {
      memory[groups[g].devices[d].index()].total = own.held[d];
    }
  }
  return find_overflow(memory, setting_.cluster());
}

// Adds the reduction tail to the times of the groups' orders, and finds an overflow.
GroupSimulation::Least GroupSimulation::add_up(const Shape& shape, const Proposal& proposal,
                                               const DeviceGroups& groups,
                                               const std::vector<const OrderTimes*>& times,
                                               Duration most) const {
  Duration last{0};
  for (const OrderTimes* own : times) {
    for (const Duration end : own->last_work) last = std::max(last, end);
  }
  const auto overflow = find_class_overflow(proposal, groups, times);
  if (overflow || last > most) return Least{last, overflow};
  std::vector<const std::vector<Duration>*> last_work;
  for (const OrderTimes* own : times) last_work.push_back(&own->last_work);
  const auto barrier =
      find_update_barrier(shape, groups, device_classes_, setting_.cluster(), options_);
  const auto alike = find_alike_makespan(shape, proposal, last_work, setting_, device_classes_,
                                         space_sums_, options_, barrier);
  if (alike) return Least{*alike, std::nullopt};
  ReductionTail tail(shape, proposal, groups, space_sums_, setting_.cluster(), options_, barrier);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const OrderTimes& own = *times[static_cast<std::size_t>(proposal.class_of[g])];
    for (std::size_t d = 0; d < groups[g].devices.size(); ++d) {
      tail.set_last_work(groups[g].devices[d], own.last_work[d], Bytes{kLargestQuantity});
    }
  }
  set_tied(tail, shape, proposal, groups);
  return Least{tail.makespan(), std::nullopt};
}

StepOutcome GroupSimulation::simulate(const Shape& shape, const Proposal& proposal,
                                      const DeviceGroups& groups) {
  StepOutcome outcome;
  // The times of the orders soon show which group is refused, and then no other needs to run.
  for (const GroupClass& group : proposal.classes) {
    if (time(shape, group, kNever).known) continue;
    outcome.refused = run(shape, group).refused;
    if (outcome.refused) return outcome;
  }
  std::vector<const GroupRun*> runs;
  for (const GroupClass& group : proposal.classes) {
    runs.push_back(&run(shape, group));
    outcome.extrapolated = outcome.extrapolated || runs.back()->extrapolated;
    if (runs.back()->refused) {
      outcome.refused = runs.back()->refused;
      return outcome;
    }
  }
  ReductionTail tail(
      shape, proposal, groups, space_sums_, setting_.cluster(), options_,
      find_update_barrier(shape, groups, device_classes_, setting_.cluster(), options_));
  outcome.memory.resize(setting_.cluster().devices.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const GroupRun& own = *runs[static_cast<std::size_t>(proposal.class_of[g])];
    for (std::size_t d = 0; d < groups[g].devices.size(); ++d) {
      const DeviceId device = groups[g].devices[d];
      MemoryPeak peak = own.memory[d];
      Bytes& held = held_of(peak, MemoryKind::kGradients);
      const Bytes gradients = tail.gradients_on(device);
      peak.total += gradients - held;
      held = gradients;
      tail.set_last_work(device, own.last_work[d], peak.total - held_throughout(peak));
      outcome.memory[device.index()] = peak;
    }
  }
  set_tied(tail, shape, proposal, groups);
  outcome.makespan = tail.makespan();
  for (std::size_t d = 0; d < outcome.memory.size(); ++d) {
    if (const auto& reducing = tail.reducing_on(DeviceId{d})) {
      reach_peak(outcome.memory[d], TimePoint{reducing->at}, reducing->size);
    }
  }
  return outcome;
}

}  // namespace frazil
