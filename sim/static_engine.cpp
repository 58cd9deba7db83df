#include "sim/static_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// A task without a place has a value from kAsleep on: kAsleep + the lane that waits for it, or
// kNoTask.
constexpr std::uint32_t kAsleep = std::uint32_t{1} << 31;

std::uint32_t largest(const std::vector<std::uint32_t>& values) {
  std::uint32_t most = 0;
  for (const std::uint32_t value : values) {
    most = std::max(most, value);
  }
  return most;
}

void check_tasks(const TaskGraph& graph) {
  const std::size_t tasks = graph.size();
  ENSURE(tasks < kAsleep && graph.dependencies().size() < kAsleep, "tasks beyond 31-bit ids");
  ENSURE(graph.lanes().size() < kNoTask - kAsleep, "lanes beyond 31-bit ids");
  if (tasks > 0) {
    ENSURE(largest(graph.lane_of()) < graph.lanes().size(), "a task names an unknown lane");
    ENSURE(largest(graph.work_of()) < graph.works().size(), "a task names an unknown work");
  }
}

void check_dependency(const Dependency& dependency, std::size_t tasks, std::size_t works) {
  ENSURE(dependency.task < tasks && dependency.on < tasks, "a dependency names an unknown task");
  ENSURE(dependency.task != dependency.on, "a task depends on itself");
  ENSURE(dependency.delay == kNoWork || dependency.delay < works,
         "a dependency names an unknown delay");
}

// The dependencies of task t are sorted[first[t]] up to sorted[first[t + 1]].
struct DependenciesByTask {
  std::vector<std::uint32_t> first;
  std::vector<Dependency> copy;
  std::span<const Dependency> sorted;  // `copy`, or the graph's own list if that is in order
};

DependenciesByTask group_by_task(const TaskGraph& graph) {
  const std::vector<Dependency>& all = graph.dependencies();
  DependenciesByTask grouped;
  grouped.first.assign(graph.size() + 1, 0);
  bool in_order = true;
  TaskId previous = 0;
  for (const Dependency& dependency : all) {
    check_dependency(dependency, graph.size(), graph.works().size());
    in_order = in_order && previous <= dependency.task;
    previous = dependency.task;
    ++grouped.first[dependency.task + 1];
  }
  std::partial_sum(grouped.first.begin(), grouped.first.end(), grouped.first.begin());
  grouped.sorted = all;
  if (in_order) {
    return grouped;
  }

  grouped.copy.resize(all.size());
  std::vector<std::uint32_t> place(grouped.first.begin(), grouped.first.end() - 1);
  for (const Dependency& dependency : all) {
    grouped.copy[place[dependency.task]++] = dependency;
  }
  grouped.sorted = grouped.copy;
  return grouped;
}

// Finds the sweep order by letting every lane run as far as it can, as devices do: a lane whose
// next task waits for another task sleeps on that task and is woken when it is placed. No list of
// successors is needed, and runs of one lane stay together in the sweep.
class LaneRunner {
 public:
  explicit LaneRunner(const TaskGraph& graph)
      : graph_(graph),
        dependencies_(group_by_task(graph)),
        after_(graph.size()),
        place_(graph.size(), kNoTask),
        lanes_(graph.lanes().size()) {
    for (std::size_t task = graph.size(); task-- > 0;) {
      LaneState& lane = lanes_[graph.lane_of()[task]];
      after_[task] = std::exchange(lane.next, static_cast<TaskId>(task));
    }
    for (LaneState& lane : lanes_) {
      if (lane.next != kNoTask) {
        lane.checked = dependencies_.first[lane.next];
      }
    }
  }

  // Places all tasks except those that wait for a cycle.
  CompiledGraph run() {
    const std::size_t tasks = graph_.size();
    CompiledGraph sweep;
    sweep.task_at.resize(tasks);
    sweep.work.resize(tasks);
    sweep.lane.resize(tasks);
    sweep.first_incoming.resize(tasks + 1);
    sweep.incoming.resize(graph_.dependencies().size());
    sweep.works = graph_.works().size();
    sweep.lanes = lanes_.size();

    std::vector<LaneId> awake(lanes_.size());
    std::iota(awake.begin(), awake.end(), LaneId{0});
    while (!awake.empty()) {
      woken_.clear();
      for (const LaneId lane : awake) {
        run_lane(lane, sweep);
      }
      awake.swap(woken_);
    }
    return sweep;
  }

  bool is_done() const { return placed_ == graph_.size(); }

  // Returns the tasks of a cycle; none if all tasks are placed. Every lane with tasks left sleeps
  // on a task of such a lane, so a walk from lane to lane ends in a circle.
  std::vector<TaskId> cycle() const {
    if (is_done()) {
      return {};
    }
    const auto asleep = std::find_if(lanes_.begin(), lanes_.end(),
                                     [](const LaneState& lane) { return lane.next != kNoTask; });
    auto lane = static_cast<LaneId>(asleep - lanes_.begin());
    std::vector<bool> seen(lanes_.size());
    while (!seen[lane]) {
      seen[lane] = true;
      lane = graph_.lane_of()[awaited(lane)];
    }
    std::vector<TaskId> tasks;
    const LaneId first = lane;
    do {
      tasks.push_back(lanes_[lane].next);
      const TaskId on = awaited(lane);
      lane = graph_.lane_of()[on];
      if (on != lanes_[lane].next) {
        tasks.push_back(on);
      }
    } while (lane != first);
    std::rotate(tasks.begin(), std::min_element(tasks.begin(), tasks.end()), tasks.end());
    return tasks;
  }

 private:
  struct LaneState {
    TaskId next = kNoTask;                // first task not placed
    std::uint32_t checked = 0;            // its dependencies before this one are placed
    std::uint32_t also_asleep = kNoTask;  // kAsleep + the next lane that sleeps on the same task
  };

  TaskId awaited(LaneId lane) const { return dependencies_.sorted[lanes_[lane].checked].on; }

  void run_lane(LaneId id, CompiledGraph& sweep) {
    LaneState& lane = lanes_[id];
    while (lane.next != kNoTask) {
      const std::uint32_t end = dependencies_.first[lane.next + 1];
      for (; lane.checked < end; ++lane.checked) {
        const TaskId on = awaited(id);
        if (place_[on] >= kAsleep) {
          lane.also_asleep = std::exchange(place_[on], kAsleep + id);
          return;
        }
      }
      place(lane.next, id, sweep);
      lane.next = after_[lane.next];
      if (lane.next != kNoTask) {
        lane.checked = dependencies_.first[lane.next];
      }
    }
  }

  void place(TaskId task, LaneId lane, CompiledGraph& sweep) {
    const std::uint32_t position = placed_++;
    std::uint32_t asleep = std::exchange(place_[task], position);
    sweep.task_at[position] = task;
    sweep.work[position] = graph_.work_of()[task];
    sweep.lane[position] = lane;
    const auto no_delay = static_cast<WorkId>(sweep.works);
    for (std::uint32_t i = dependencies_.first[task]; i < dependencies_.first[task + 1]; ++i) {
      const Dependency& dependency = dependencies_.sorted[i];
      sweep.incoming[incoming_++] = {place_[dependency.on],
                                     dependency.delay == kNoWork ? no_delay : dependency.delay};
    }
    sweep.first_incoming[position + 1] = incoming_;
    for (; asleep != kNoTask; asleep = lanes_[asleep - kAsleep].also_asleep) {
      woken_.push_back(asleep - kAsleep);
    }
  }

  const TaskGraph& graph_;
  DependenciesByTask dependencies_;
  std::vector<TaskId> after_;         // next task on the same lane
  std::vector<std::uint32_t> place_;  // by task: its sweep position, or who sleeps on it
  std::vector<LaneState> lanes_;
  std::vector<LaneId> woken_;
  std::uint32_t placed_ = 0;
  std::uint32_t incoming_ = 0;
};

std::string describe_deadlock(const TaskGraph& graph, const std::vector<TaskId>& cycle,
                              const std::function<std::string(TaskId)>& name_of) {
  constexpr std::size_t kNamed = 6;
  const auto name = [&](TaskId task) {
    if (name_of) {
      return name_of(task);
    }
    return fmt::format("task {} on device {}", task,
                       graph.lanes()[graph.lane_of()[task]].device.value);
  };
  std::string sentence = "deadlock: " + name(cycle[0]);
  for (std::size_t i = 1; i < std::min(cycle.size(), kNamed); ++i) {
    sentence += " waits for " + name(cycle[i]);
  }
  if (cycle.size() > kNamed) {
    sentence += fmt::format(" waits for {} more", cycle.size() - kNamed);
  }
  return sentence + " waits for " + name(cycle[0]);
}

}  // namespace

CompiledGraph compile(const TaskGraph& graph, const std::function<std::string(TaskId)>& name_of) {
  check_tasks(graph);
  LaneRunner runner(graph);
  CompiledGraph sweep = runner.run();
  if (!runner.is_done()) {
    throw InfeasibleError(describe_deadlock(graph, runner.cycle(), name_of));
  }
  return sweep;
}

std::vector<TaskId> find_cycle(const TaskGraph& graph) {
  check_tasks(graph);
  LaneRunner runner(graph);
  runner.run();
  return runner.cycle();
}

void evaluate(const CompiledGraph& graph, std::span<const Duration> prices, SweepTimes& times) {
  ENSURE(prices.size() >= graph.works, "a price for every work");
  const std::size_t tasks = graph.task_at.size();
  times.end.resize(tasks);
  times.lane_end.assign(graph.lanes, 0);
  times.prices.resize(graph.works + 1);
  for (std::size_t i = 0; i < graph.works; ++i) {
    times.prices[i] = prices[i].count();
  }
  times.prices[graph.works] = 0;

  const CompiledGraph::Incoming* incoming = graph.incoming.data();
  std::int64_t* const ends = times.end.data();
  std::int64_t* const lane_ends = times.lane_end.data();
  const std::int64_t* const price = times.prices.data();
  for (std::size_t i = 0; i < tasks; ++i) {
    std::int64_t& lane_end = lane_ends[graph.lane[i]];
    std::int64_t start = lane_end;
    const CompiledGraph::Incoming* const last = graph.incoming.data() + graph.first_incoming[i + 1];
    for (; incoming != last; ++incoming) {
      start = std::max(start, ends[incoming->on] + price[incoming->delay]);
    }
    ends[i] = lane_end = start + price[graph.work[i]];
  }
}

Duration latest_end(const SweepTimes& times) {
  std::int64_t latest = 0;
  for (const std::int64_t end : times.lane_end) {
    latest = std::max(latest, end);
  }
  return Duration{latest};
}

}  // namespace frazil
