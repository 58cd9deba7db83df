#include "planner/prediction/idle_time.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <variant>

#include "profiles/error.h"

namespace frazil {
namespace {

// True if `producer` makes the input of the F in `task`. Without a SEND only the micro-batch tells
// which half of a pair waits; an F of another stage in between would arrive later.
bool hands_on_forward(const Action& producer, const Action& task) {
  const auto forward_of = [](const Action& action) {
    const auto* pair = std::get_if<ActionPair>(&action.detail);
    return pair == nullptr ? &action : &pair->halves.front();
  };
  const Action* from = forward_of(producer);
  const Action* to = forward_of(task);
  return from->kind == ActionKind::kForward && to->kind == ActionKind::kForward &&
         from->micro_batches == to->micro_batches;
}

// An input that the next task of a device waits for.
struct Input {
  TaskId producer = kNoTask;  // a compute task; kNoTask for a reduction, a barrier or an overhead
  TimePoint arrival;
  bool is_forward = false;
  bool is_overhead = false;
};

class MakespanSplit {
 public:
  MakespanSplit(const LoweredStep& step, const Simulation& simulation,
                std::span<const Duration> prices)
      : step_(step), simulation_(simulation), binding_(step.graph.size()) {
    find_producers();
    find_binding_inputs(prices);
  }

  std::vector<DeviceTime> run(int devices) const {
    std::vector<DeviceTime> times(static_cast<std::size_t>(devices));
    std::vector<TaskId> last(times.size(), kNoTask);
    for (TaskId task = 0; task < step_.graph.size(); ++task) {
      if (lane_of(task).lane != Lane::kCompute) continue;
      const std::size_t device = lane_of(task).device.index();
      add_task(task, last.at(device), times[device]);
      last[device] = task;
    }
    const TimePoint end = TimePoint{} + simulation_.makespan;
    for (std::size_t device = 0; device < times.size(); ++device) {
      if (last[device] == kNoTask) {
        times[device].fill = simulation_.makespan;
      } else {
        times[device].drain = end - simulation_.end[last[device]];
      }
    }
    return times;
  }

 private:
  const TaskLane& lane_of(TaskId task) const {
    return step_.graph.lanes()[step_.graph.lane_of()[task]];
  }

  // Finds the producer of each task's output; that of a SEND is the compute task it depends on.
  void find_producers() {
    producer_.assign(step_.graph.size(), kNoTask);
    for (TaskId task = 0; task < step_.graph.size(); ++task) {
      if (lane_of(task).lane == Lane::kCompute) producer_[task] = task;
    }
    for (const Dependency& dependency : step_.graph.dependencies()) {
      if (lane_of(dependency.task).lane == Lane::kSend) producer_[dependency.task] = dependency.on;
    }
  }

  void find_binding_inputs(std::span<const Duration> prices) {
    ENSURE(prices.size() >= step_.graph.works().size(), "a price for every work");
    for (const Dependency& dependency : step_.graph.dependencies()) {
      if (lane_of(dependency.task).lane != Lane::kCompute) continue;
      const Duration delay = dependency.delay == kNoWork ? Duration{0} : prices[dependency.delay];
      const Input input =
          describe_input(dependency.task, dependency.on, simulation_.end[dependency.on] + delay);
      Input& binding = binding_[dependency.task];
      if (rank(binding) < rank(input)) binding = input;
    }
  }

  Input describe_input(TaskId task, TaskId on, TimePoint arrival) const {
    const TaskId producer = producer_[on];
    if (producer == kNoTask) {
      return {kNoTask, arrival, false, lane_of(on).lane == Lane::kHost};
    }
    const ActionKind sent = step_.actions[on].kind;
    const bool is_forward = sent == ActionKind::kSendForward ||
                            (sent != ActionKind::kSendBackward &&
                             hands_on_forward(step_.actions[producer], step_.actions[task]));
    return {producer, arrival, is_forward, false};
  }

  std::tuple<TimePoint, TimePoint, bool> rank(const Input& input) const {
    const TimePoint ended =
        input.producer == kNoTask ? TimePoint{} : simulation_.end[input.producer];
    return {input.arrival, ended, input.is_forward};
  }

  void add_task(TaskId task, TaskId before, DeviceTime& time) const {
    const TimePoint start = simulation_.start[task];
    time.compute += simulation_.end[task] - start;
    if (before == kNoTask) {
      time.fill += start - TimePoint{};
    } else if (simulation_.end[before] < start) {
      add_wait(task, simulation_.end[before], time);
    }
  }

  void add_wait(TaskId task, TimePoint since, DeviceTime& time) const {
    const TimePoint start = simulation_.start[task];
    const Input& input = binding_[task];
    ENSURE(input.arrival == start, "a device idles though its next task could start");
    if (step_.actions[task].kind == ActionKind::kUpdate) {
      time.update += start - since;
      return;
    }
    if (input.producer == kNoTask) {
      ENSURE(input.is_overhead, "a compute waits for what no compute makes");
      time.fill += start - since;  // for the next step of a window
      return;
    }
    const TimePoint under_way = std::max(since, simulation_.end[input.producer]);
    (input.is_forward ? time.wait_upstream : time.wait_downstream) += under_way - since;
    time.exposed_communication += start - under_way;
  }

  const LoweredStep& step_;
  const Simulation& simulation_;
  std::vector<TaskId> producer_;  // by compute or send task; kNoTask for others
  std::vector<Input> binding_;    // by compute task
};

}  // namespace

Duration total(const DeviceTime& time) {
  return time.compute + time.exposed_communication + time.wait_upstream + time.wait_downstream +
         time.update + time.fill + time.drain;
}

DeviceTime sum(std::span<const DeviceTime> devices) {
  DeviceTime all;
  for (const DeviceTime& time : devices) {
    all.compute += time.compute;
    all.exposed_communication += time.exposed_communication;
    all.wait_upstream += time.wait_upstream;
    all.wait_downstream += time.wait_downstream;
    all.update += time.update;
    all.fill += time.fill;
    all.drain += time.drain;
  }
  return all;
}

std::vector<DeviceTime> split_makespan(const LoweredStep& step, const Simulation& simulation,
                                       std::span<const Duration> prices, int devices) {
  ENSURE(step.actions.size() == step.graph.size() && simulation.end.size() == step.graph.size(),
         "an action and times for every task");
  return MakespanSplit(step, simulation, prices).run(devices);
}

}  // namespace frazil
