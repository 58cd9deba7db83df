#include "tests/sim/event_reference.h"

#include <algorithm>
#include <tuple>
#include <variant>

namespace frazil {
namespace {

Fraction reduce(WideInteger above, WideInteger below) {
  WideInteger a = above < 0 ? -above : above;
  WideInteger b = below;
  while (b != 0) a = std::exchange(b, a % b);
  return {above / a, below / a};
}

class SteppedRun {
 public:
  SteppedRun(const TaskGraph& graph, std::span<const Duration> prices, const EventOptions& options)
      : graph_(graph),
        prices_(prices),
        options_(options),
        tasks_(graph.size()),
        used_(options.memory_limits.size()),
        slots_(graph.size()) {
    for (const TaskGraph::Held& held : graph.held()) {
      if (held.device.index() < used_.size()) used_[held.device.index()] += held.size.count;
    }
  }

  std::optional<std::vector<TaskTimes>> run() {
    std::size_t idle = 0;
    for (now_ = 0; idle < kPatience; ++now_, ++idle) {
      while (end_tasks() || start_tasks()) idle = 0;
      share_out();
      for (State& task : tasks_) {
        if (task.stage == Stage::kRuns) task.left = task.left - task.rate;
      }
      if (count(Stage::kEnded) == tasks_.size()) return times();
    }
    return std::nullopt;
  }

 private:
  // The patience is longer than any time or delay in the graphs.
  static constexpr std::size_t kPatience = 2000;
  enum class Stage : std::uint8_t { kWaits, kTurn, kArrived, kRuns, kEnded };
  struct State {
    Stage stage = Stage::kWaits;
    std::int64_t since = 0;  // its turn came
    std::int64_t start = 0;
    std::int64_t end = 0;
    bool stops_sender = false;
    Fraction left;
    Fraction rate;
  };

  std::size_t count(Stage stage) const {
    return static_cast<std::size_t>(std::count_if(
        tasks_.begin(), tasks_.end(), [&](const State& task) { return task.stage == stage; }));
  }
  std::vector<TaskTimes> times() const {
    std::vector<TaskTimes> all;
    for (const State& task : tasks_) all.push_back({task.start, task.end});
    return all;
  }
  LaneId lane_of(TaskId task) const { return graph_.lane_of()[task]; }
  DeviceId device_of(TaskId task) const { return graph_.lanes()[lane_of(task)].device; }
  std::int64_t price_of(TaskId task) const { return prices_[graph_.work_of()[task]].count(); }
  Dispatch rule_of(LaneId lane) const {
    return lane < options_.dispatch.size() ? options_.dispatch[lane] : Dispatch::kInOrder;
  }
  const Transfer* message(TaskId task) const {
    return std::get_if<Transfer>(&graph_.works()[graph_.work_of()[task]]);
  }
  bool is_on_lane(TaskId task) const {
    return tasks_[task].stage == Stage::kArrived || tasks_[task].stage == Stage::kRuns;
  }
  bool is_busy(LaneId lane) const {
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (lane_of(task) == lane && is_on_lane(task)) return true;
    }
    return false;
  }
  const Meeting* meeting_of(TaskId task) const {
    for (const Meeting& meeting : options_.meetings) {
      if (std::find(meeting.begin(), meeting.end(), task) != meeting.end()) return &meeting;
    }
    return nullptr;
  }

  // True if the task's dependencies have ended, its delays have passed and, on a lane in order, it
  // is next.
  bool could_have_turn(TaskId task) const {
    for (TaskId other = 0; other < task; ++other) {
      if (rule_of(lane_of(task)) == Dispatch::kInOrder && lane_of(other) == lane_of(task) &&
          tasks_[other].stage != Stage::kEnded) {
        return false;
      }
    }
    for (const Dependency& dependency : graph_.dependencies()) {
      if (dependency.task != task) continue;
      const State& on = tasks_[dependency.on];
      const std::int64_t delay =
          dependency.delay == kNoWork ? 0 : prices_[dependency.delay].count();
      if (on.stage != Stage::kEnded || on.end + delay > now_) return false;
    }
    return true;
  }

  bool end_tasks() {
    std::vector<TaskId> ending;
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      const State& state = tasks_[task];
      if (state.stage == Stage::kRuns && !(Fraction{0, 1} < state.left)) ending.push_back(task);
    }
    for (const TaskId task : ending) {
      tasks_[task].stage = Stage::kEnded;
      tasks_[task].end = now_;
      tasks_[task].stops_sender = false;
      change_memory(task, MemoryChange::When::kEnd);
    }
    return !ending.empty();
  }

  bool start_tasks() {
    bool any = false;
    while (start_first()) any = true;
    return any;
  }

  // Starts the first task that may, in the order in which the engine says that lanes are served.
  bool start_first() {
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      State& state = tasks_[task];
      if (state.stage != Stage::kWaits || !could_have_turn(task)) continue;
      state.stage = Stage::kTurn;
      state.since = now_;
    }
    std::vector<std::vector<TaskId>> queues;
    for (LaneId lane = 0; lane < graph_.lanes().size(); ++lane) {
      std::vector<TaskId> queue = queue_of(lane);
      if (!queue.empty()) queues.push_back(std::move(queue));
    }
    std::sort(queues.begin(), queues.end(), [this](const auto& a, const auto& b) {
      return service_key(a.front()) < service_key(b.front());
    });
    for (const std::vector<TaskId>& queue : queues) {
      const LaneId lane = lane_of(queue.front());
      if (is_busy(lane) || is_stopped(lane) || !lane_to_stop(queue.front())) continue;
      tasks_[queue.front()].stops_sender = true;
    }
    return std::any_of(queues.begin(), queues.end(),
                       [this](const std::vector<TaskId>& queue) { return serve(queue); });
  }

  // Lists the tasks of a lane that have their turn, best first; a message that stops a lane goes
  // on.
  std::vector<TaskId> queue_of(LaneId lane) const {
    std::vector<TaskId> queue;
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (lane_of(task) == lane && tasks_[task].stage == Stage::kTurn) queue.push_back(task);
    }
    const auto key = [&](TaskId task) {
      const std::int64_t priority =
          task < options_.priorities.size() ? options_.priorities[task] : 0;
      return std::tuple(!tasks_[task].stops_sender,
                        rule_of(lane) == Dispatch::kPriority ? -priority : tasks_[task].since,
                        task);
    };
    std::sort(queue.begin(), queue.end(), [&](TaskId a, TaskId b) { return key(a) < key(b); });
    return queue;
  }
  std::tuple<bool, std::int64_t, TaskId> service_key(TaskId task) const {
    return {!lane_to_stop(task).has_value(), tasks_[task].since, task};
  }

  bool serve(const std::vector<TaskId>& queue) {
    const LaneId lane = lane_of(queue.front());
    if (is_busy(lane) || is_stopped(lane)) return false;
    for (const TaskId task : queue) {
      if (may_start(task)) {
        start(task);
        return true;
      }
      if (tasks_[task].stops_sender) return false;
    }
    return false;
  }

  std::optional<LaneId> lane_to_stop(TaskId task) const {
    if (!options_.messages.block_sender || message(task) == nullptr) return std::nullopt;
    for (LaneId lane = 0; lane < graph_.lanes().size(); ++lane) {
      const TaskLane& at = graph_.lanes()[lane];
      if (at.device != message(task)->from || at.lane != Lane::kCompute) continue;
      return lane == lane_of(task) ? std::nullopt : std::optional(lane);
    }
    return std::nullopt;
  }
  bool is_stopped(LaneId lane) const {
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].stops_sender && lane_to_stop(task) == lane) return true;
    }
    return false;
  }

  bool may_start(TaskId task) {
    const std::optional<LaneId> stopped = lane_to_stop(task);
    if (stopped) {
      tasks_[task].stops_sender = true;
      if (is_busy(*stopped)) return false;
    }
    return has_buffer(task) && has_memory(task);
  }

  std::optional<TaskId> receiver_of(TaskId task) const {
    std::optional<TaskId> receiver;
    if (message(task) == nullptr) return receiver;
    for (const Dependency& dependency : graph_.dependencies()) {
      if (dependency.on != task || device_of(dependency.task) != message(task)->to) continue;
      receiver = std::min(receiver.value_or(dependency.task), dependency.task);
    }
    return receiver;
  }
  bool needs_buffer(TaskId task) const {
    const std::optional<TaskId> receiver = receiver_of(task);
    if (!options_.messages.buffers || !receiver) return false;
    const LaneId lane = lane_of(*receiver);
    if (is_busy(lane) || is_stopped(lane)) return true;
    if (rule_of(lane) != Dispatch::kInOrder) return false;
    for (TaskId other = 0; other < *receiver; ++other) {
      if (lane_of(other) == lane && tasks_[other].stage != Stage::kEnded) return true;
    }
    return tasks_[*receiver].stage == Stage::kEnded;
  }
  bool has_buffer(TaskId task) const {
    if (!needs_buffer(task)) return true;
    int used = 0;
    for (TaskId other = 0; other < tasks_.size(); ++other) {
      if (!slots_[other]) continue;
      used +=
          message(other)->from == message(task)->from && message(other)->to == message(task)->to;
    }
    return used < *options_.messages.buffers;
  }

  // Returns the sum of the task's changes on a device at its start, and at start and end together.
  std::pair<std::int64_t, std::int64_t> needs(TaskId task, std::size_t device) const {
    std::int64_t first = 0;
    std::int64_t both = 0;
    for (const MemoryChange& change : graph_.memory_changes()) {
      if (change.task != task || change.device.index() != device) continue;
      both += change.delta;
      if (change.when == MemoryChange::When::kStart) first += change.delta;
    }
    return {std::max(first, both), both - std::max(first, both)};
  }
  bool has_memory(TaskId task) const {
    for (std::size_t device = 0; device < used_.size(); ++device) {
      const std::int64_t most = needs(task, device).first;
      if (most > 0 && used_[device] + most > options_.memory_limits[device].count) return false;
    }
    return true;
  }
  void change_memory(TaskId task, MemoryChange::When when) {
    for (std::size_t device = 0; device < used_.size(); ++device) {
      const auto [first, then] = needs(task, device);
      used_[device] += when == MemoryChange::When::kStart ? first : then;
    }
  }

  void start(TaskId task) {
    State& state = tasks_[task];
    if (needs_buffer(task)) slots_[task] = true;
    change_memory(task, MemoryChange::When::kStart);
    for (TaskId other = 0; other < tasks_.size(); ++other) {
      if (slots_[other] && receiver_of(other) == task) slots_[other] = false;
    }
    state.start = now_;
    const Meeting* const meeting = meeting_of(task);
    state.stage = meeting == nullptr ? Stage::kRuns : Stage::kArrived;
    state.left = work_of(task, price_of(task));
    if (meeting == nullptr) return;
    std::int64_t longest = 0;
    for (const TaskId member : *meeting) {
      if (tasks_[member].stage != Stage::kArrived) return;
      longest = std::max(longest, price_of(member));
    }
    for (const TaskId member : *meeting) {
      tasks_[member].stage = Stage::kRuns;
      tasks_[member].start = now_;
      tasks_[member].left = work_of(meeting->front(), longest);
    }
  }
  bool is_flow(TaskId task) const { return options_.sharing.is_shared(graph_.work_of()[task]); }
  Fraction work_of(TaskId task, std::int64_t price) const {
    const std::int64_t rate =
        is_flow(task) ? options_.sharing.draws[graph_.work_of()[task]].rate : 1;
    return {WideInteger{price} * rate, 1};
  }

  // A meeting is one flow, that of its first member.
  void share_out() {
    std::vector<TaskId> flowing;
    std::vector<ReferenceFlow> flows;
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      const Meeting* const meeting = meeting_of(task);
      tasks_[task].rate = {1, 1};
      if (tasks_[task].stage != Stage::kRuns || !is_flow(task)) continue;
      if (meeting != nullptr && meeting->front() != task) continue;
      const WorkId work = graph_.work_of()[task];
      const auto resources = options_.sharing.resources_of(work);
      flowing.push_back(task);
      flows.push_back({options_.sharing.draws[work].rate, {resources.begin(), resources.end()}});
    }
    const std::vector<Fraction> rates = fill_with_water(options_.sharing.capacities, flows);
    for (std::size_t i = 0; i < flowing.size(); ++i) tasks_[flowing[i]].rate = rates[i];
    for (const Meeting& meeting : options_.meetings) {
      for (const TaskId member : meeting) tasks_[member].rate = tasks_[meeting.front()].rate;
    }
  }

  const TaskGraph& graph_;
  std::span<const Duration> prices_;
  const EventOptions& options_;
  std::vector<State> tasks_;
  std::vector<std::int64_t> used_;  // by device with a limit
  std::vector<bool> slots_;         // by task: a message in a buffer
  std::int64_t now_ = 0;
};

}  // namespace

Fraction operator+(const Fraction& a, const Fraction& b) {
  return reduce(a.above * b.below + b.above * a.below, a.below * b.below);
}
Fraction operator-(const Fraction& a, const Fraction& b) { return a + Fraction{-b.above, b.below}; }
Fraction operator/(const Fraction& a, std::int64_t by) { return reduce(a.above, a.below * by); }

std::vector<Fraction> fill_with_water(std::span<const std::int64_t> capacities,
                                      std::span<const ReferenceFlow> flows) {
  std::vector<Fraction> rates(flows.size());
  std::vector<bool> rises(flows.size(), true);
  std::vector<Fraction> left;
  for (const std::int64_t capacity : capacities) left.push_back({capacity, 1});
  while (std::find(rises.begin(), rises.end(), true) != rises.end()) {
    std::vector<std::int64_t> rising(capacities.size());
    std::optional<Fraction> rise;
    const auto bound = [&](const Fraction& by) {
      if (!rise || by < *rise) rise = by;
    };
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!rises[i]) continue;
      bound(Fraction{flows[i].most, 1} - rates[i]);
      for (const ResourceId resource : flows[i].resources) ++rising[resource];
    }
    for (std::size_t r = 0; r < left.size(); ++r) {
      if (rising[r] > 0) bound(left[r] / rising[r]);
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!rises[i]) continue;
      rates[i] = rates[i] + *rise;
      for (const ResourceId resource : flows[i].resources) left[resource] = left[resource] - *rise;
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      rises[i] = rises[i] && rates[i] < Fraction{flows[i].most, 1};
      for (const ResourceId resource : flows[i].resources) {
        rises[i] = rises[i] && Fraction{0, 1} < left[resource];
      }
    }
  }
  return rates;
}

std::optional<std::vector<TaskTimes>> step_through_time(const TaskGraph& graph,
                                                        std::span<const Duration> prices,
                                                        const EventOptions& options) {
  return SteppedRun(graph, prices, options).run();
}

}  // namespace frazil
