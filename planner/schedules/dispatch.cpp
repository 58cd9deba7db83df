#include "planner/schedules/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <variant>

#include "planner/lowering/lower.h"
#include "profiles/error.h"
#include "sim/cost_model.h"
#include "sim/event_engine.h"

namespace frazil {
namespace {

// Lists the actions that a policy orders, compute and messages, each once.
Schedule list_actions(const Plan& plan, int devices, const ModelProfile& profile,
                      const Activity& activity) {
  Plan listed = plan;
  listed.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  Schedule schedule = complete_schedule(make_schedule(listed, devices), listed, profile, activity);
  for (std::vector<Action>& list : schedule.devices) {
    std::erase_if(list, [](const Action& action) {
      return action.kind == ActionKind::kUpdate || action.kind == ActionKind::kReduceGradients;
    });
  }
  return schedule;
}

// Finds for each task the longest path from its start to the end of the step.
std::vector<Duration> find_remaining(const TaskGraph& graph, const std::vector<Duration>& prices) {
  std::vector<std::vector<Dependency>> outgoing(graph.size());
  std::vector<int> open(graph.size());
  for (const Dependency& dependency : graph.dependencies()) {
    outgoing[dependency.on].push_back(dependency);
    ++open[dependency.on];
  }
  std::vector<std::vector<TaskId>> incoming(graph.size());
  for (const Dependency& dependency : graph.dependencies()) {
    incoming[dependency.task].push_back(dependency.on);
  }
  std::vector<TaskId> ready;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (open[task] == 0) ready.push_back(task);
  }
  std::vector<Duration> remaining(graph.size());
  while (!ready.empty()) {
    const TaskId task = ready.back();
    ready.pop_back();
    Duration after{0};
    for (const Dependency& dependency : outgoing[task]) {
      const Duration delay = dependency.delay == kNoWork ? Duration{0} : prices[dependency.delay];
      after = std::max(after, delay + remaining[dependency.task]);
    }
    remaining[task] = prices[graph.work_of()[task]] + after;
    for (const TaskId before : incoming[task]) {
      if (--open[before] == 0) ready.push_back(before);
    }
  }
  return remaining;
}

// Turns remaining times into ranks, for a priority is a small number.
std::vector<std::int32_t> rank_by(const std::vector<Duration>& remaining) {
  std::vector<Duration> sorted = remaining;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::int32_t> ranks;
  ranks.reserve(remaining.size());
  for (const Duration time : remaining) {
    const auto place = std::lower_bound(sorted.begin(), sorted.end(), time);
    ranks.push_back(static_cast<std::int32_t>(place - sorted.begin()));
  }
  return ranks;
}

std::vector<std::int32_t> prefer_backwards(const LoweredStep& step, int micro_batches) {
  std::vector<std::int32_t> priorities;
  priorities.reserve(step.actions.size());
  for (const Action& action : step.actions) {
    const int early = action.micro_batches ? micro_batches - action.micro_batches->first.value : 0;
    const bool forward = action.kind == ActionKind::kForward;
    priorities.push_back(early + (forward ? 0 : micro_batches + 1));
  }
  return priorities;
}

EventOptions make_options(const Plan& plan, const LoweredStep& step, const Cluster& cluster,
                          const std::vector<Duration>& prices) {
  EventOptions options;
  Dispatch dispatch = Dispatch::kFirstReady;
  switch (std::get<DispatchPolicy>(plan.schedule)) {
    case DispatchPolicy::kFifo:
      break;
    case DispatchPolicy::kPriority:
      dispatch = Dispatch::kPriority;
      options.priorities = prefer_backwards(step, plan.micro_batches());
      break;
    case DispatchPolicy::kLrtf:
      dispatch = Dispatch::kPriority;
      options.priorities = rank_by(find_remaining(step.graph, prices));
      break;
    case DispatchPolicy::kSteal:
      throw InfeasibleError("the dispatch policy steal is not interpreted yet");
  }
  for (const TaskLane& lane : step.graph.lanes()) {
    options.dispatch.push_back(lane.lane == Lane::kCompute ? dispatch : Dispatch::kFirstReady);
  }
  for (const Device& device : cluster.devices) {
    options.memory_limits.push_back(device.memory_limit);
  }
  return options;
}

}  // namespace

Schedule dispatch(const Plan& plan, int devices, Setting setting) {
  if (plan.versions != WeightVersions::kSync) {
    throw InfeasibleError("a dispatch policy goes with the weight versions sync");
  }
  const Activity activity = find_activity(setting.profile(), plan);
  const Schedule listed = list_actions(plan, devices, setting.profile(), activity);
  const LoweredStep step = lower(plan, listed, setting, activity, {.any_order = true});
  const std::vector<Duration> prices = price_all(step.graph, setting).of_work;
  const auto name_of = [&](TaskId task) {
    const DeviceId device = step.graph.lanes()[step.graph.lane_of()[task]].device;
    return fmt::format("{} on device {}", to_text(step.actions[task]), device.value);
  };
  const EventTimes times = simulate_events(
      step.graph, prices, make_options(plan, step, setting.cluster(), prices), name_of);

  std::vector<TaskId> order;
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    const TaskLane& lane = step.graph.lanes()[step.graph.lane_of()[task]];
    if (lane.lane == Lane::kCompute) order.push_back(task);
  }
  std::stable_sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
    return std::tuple(times.of[a].start, times.of[a].end) <
           std::tuple(times.of[b].start, times.of[b].end);
  });
  Schedule schedule;
  schedule.devices.resize(static_cast<std::size_t>(devices));
  for (const TaskId task : order) {
    const DeviceId device = step.graph.lanes()[step.graph.lane_of()[task]].device;
    schedule.devices.at(device.index()).push_back(step.actions[task]);
  }
  return schedule;
}

}  // namespace frazil
