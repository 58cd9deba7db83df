#include "sim/event_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "profiles/error.h"
#include "sim/dispatcher.h"
#include "sim/event_queue.h"
#include "sim/flows.h"
#include "sim/stalemate.h"

namespace frazil {
namespace {

// The end of a task that has not ended is negative: kNobody when no slot sleeps on the task, lower
// values when the slot sleeper(end) is the first that does.
constexpr std::int64_t kNobody = -1;
constexpr std::int64_t sleeps(std::uint32_t slot) { return kNobody - 1 - std::int64_t{slot}; }
constexpr std::uint32_t sleeper(std::int64_t end) {
  return end == kNobody ? kNoTask : static_cast<std::uint32_t>(kNobody - 1 - end);
}
// The meaning of an event: its task ends, or its turn has come. Lower values are the flow that may
// end the task.
constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kTurn = kEnd - 1;

// An open task sleeps on the first of its dependencies that has not ended, and that dependency's
// end wakes it: no list of successors is needed. An in-order lane has only its next task open, in
// the slot of the lane. Tasks of other lanes are all open and have slots of their own behind the
// lanes'.
struct Open {
  TaskId task = kNoTask;
  std::uint32_t checked = 0;            // dependencies before this one have ended
  std::uint32_t also_asleep = kNoTask;  // the next slot that sleeps on the same task
};

class EventRun {
 public:
  EventRun(const EventGraph& graph, std::span<const Duration> prices, const Noise& noise,
           EventTimes& times)
      : graph_(graph),
        tasks_(*graph.graph),
        incoming_(graph.incoming()),
        times_(times),
        noisy_(noise),
        flows_(graph.options.sharing),
        dispatcher_(graph),
        open_(tasks_.lanes().size() + (graph.is_dynamic ? tasks_.size() : 0)),
        arrived_(graph.options.meetings.size()),
        has_arrived_(graph.meeting_of.size()) {
    const std::size_t works = tasks_.works().size();
    ENSURE(prices.size() >= works, "a price for every work");
    for (std::size_t work = 0; work < works; ++work) {
      ENSURE(prices[work].count() >= 0, "prices of 0 or more");
      prices_.push_back(prices[work].count());
    }
    times.of.assign(tasks_.size(), {.start = 0, .end = kNobody});
  }

  // Runs until all tasks have ended, except those that wait for ever.
  void run() {
    open_lanes();
    for (;;) {
      if (graph_.is_gated) {
        for (const TaskId task : dispatcher_.start_tasks()) begin(task);
      }
      if (queue_.empty() || queue_.next_time() > now_) flows_.settle(now_, queue_);
      if (queue_.empty()) break;
      now_ = queue_.next_time();
      do {
        take(queue_.pop());
      } while (!queue_.empty() && queue_.next_time() == now_);
    }
    times_.rounded = flows_.rounded();
  }

  bool is_done() const { return ended_ == tasks_.size(); }

  // Describes why some tasks have not ended. Requires: run() has returned and is_done() is false.
  std::string describe(const std::function<std::string(TaskId)>& name_of) const {
    std::vector<TaskId> next(graph_.first_of_lane);
    std::vector<TaskId> held_up;
    for (LaneId lane = 0; lane < next.size(); ++lane) {
      if (!graph_.is_in_order(lane)) continue;
      TaskId& task = next[lane];
      while (task != kNoTask && has_ended(task)) task = graph_.places[task].after;
      if (task != kNoTask) held_up.push_back(task);
    }
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (!graph_.is_in_order(tasks_.lane_of()[task]) && !has_ended(task)) held_up.push_back(task);
    }
    const auto obstacle_of = [&](TaskId task) {
      const LaneId lane = tasks_.lane_of()[task];
      const bool is_next = !graph_.is_in_order(lane) || next[lane] == task;
      return is_next ? find_obstacle(task) : Obstacle{next[lane]};
    };
    const auto default_name = [&](TaskId task) {
      return fmt::format("task {} on device {}", task,
                         tasks_.lanes()[tasks_.lane_of()[task]].device.value);
    };
    return describe_stalemate(held_up, obstacle_of, name_of ? name_of : default_name);
  }

 private:
  void open_lanes() {
    for (LaneId lane = 0; lane < graph_.first_of_lane.size(); ++lane) {
      const TaskId first = graph_.first_of_lane[lane];
      if (first != kNoTask && graph_.is_in_order(lane)) open(first);
    }
    if (!graph_.is_dynamic) return;
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (!graph_.is_in_order(tasks_.lane_of()[task])) open(task);
    }
  }

  std::uint32_t slot_of(TaskId task) const {
    const LaneId lane = tasks_.lane_of()[task];
    if (!graph_.is_dynamic || graph_.is_in_order(lane)) return lane;
    return static_cast<std::uint32_t>(tasks_.lanes().size()) + task;
  }

  void open(TaskId task) {
    const std::uint32_t slot = slot_of(task);
    open_[slot].task = task;
    open_[slot].checked = graph_.places[task].first_incoming;
    check(slot);
  }

  void check(std::uint32_t slot) {
    const TaskId task = open_[slot].task;
    std::uint32_t& checked = open_[slot].checked;
    const std::uint32_t last = graph_.places[task + 1].first_incoming;
    for (; checked < last; ++checked) {
      const TaskId on = incoming_[checked].on;
      if (!has_ended(on)) {
        open_[slot].also_asleep = sleeper(std::exchange(times_.of[on].end, sleeps(slot)));
        return;
      }
    }
    std::int64_t ready = now_;
    for (std::uint32_t i = graph_.places[task].first_incoming; i < last; ++i) {
      ready = std::max(ready, times_.of[incoming_[i].on].end + delay_of(incoming_[i]));
    }
    plan(task, ready);
  }

  void plan(TaskId task, std::int64_t ready) {
    if (!graph_.is_gated && graph_.is_plain[tasks_.work_of()[task]]) {
      times_.of[task].start = ready;
      fetch_ahead(task);
      queue_.push({ready + price_of(task), task, kEnd});
    } else if (ready > now_) {
      queue_.push({ready, task, kTurn});
    } else if (graph_.is_gated) {
      dispatcher_.offer(task, now_);
    } else {
      begin(task);
    }
  }

  // Prefetches the table entries about a cache line ahead. Tasks of a lane mostly have ids in a
  // row, which the processor does not see with many lanes in long tables. (A call that is not
  // inlined would be taken for one without effect and left out.)
  [[gnu::always_inline]] void fetch_ahead(TaskId task) {
    constexpr std::size_t kAhead = 16;
    const std::size_t ahead = std::min(task + kAhead, tasks_.size() - 1);
    __builtin_prefetch(&tasks_.lane_of()[ahead]);
    __builtin_prefetch(&times_.of[ahead], 1);
    __builtin_prefetch(&tasks_.work_of()[ahead]);
    __builtin_prefetch(&graph_.places[ahead]);
    const std::size_t behind = graph_.places[task + 1].first_incoming;
    __builtin_prefetch(incoming_ + std::min(behind + kAhead, tasks_.dependencies().size()));
  }

  void take(const Event& event) {
    if (event.what == kEnd || (event.what < kTurn && flows_.ends(event, queue_))) {
      end(event.task);
    } else if (event.what == kTurn) {
      plan(event.task, now_);
    }
  }

  void begin(TaskId task) {
    times_.of[task].start = now_;
    const std::uint32_t meeting = graph_.meeting_of.empty() ? kNoMeeting : graph_.meeting_of[task];
    if (meeting == kNoMeeting) {
      occupy(task, price_of(task));
      return;
    }
    const Meeting& members = graph_.options.meetings[meeting];
    has_arrived_[task] = true;
    if (++arrived_[meeting] < members.size()) return;
    std::int64_t longest = 0;
    for (const TaskId member : members) {
      times_.of[member].start = now_;
      longest = std::max(longest, price_of(member));
    }
    occupy(members.front(), longest);
  }

  void occupy(TaskId task, std::int64_t price) {
    const WorkId work = tasks_.work_of()[task];
    if (price > 0 && graph_.options.sharing.is_shared(work)) {
      flows_.start(task, work, price, now_);
    } else {
      queue_.push({now_ + price, task, kEnd});
    }
  }

  void end(TaskId task) {
    const std::uint32_t meeting = graph_.meeting_of.empty() ? kNoMeeting : graph_.meeting_of[task];
    if (meeting == kNoMeeting) {
      leave(task);
      return;
    }
    for (const TaskId member : graph_.options.meetings[meeting]) leave(member);
  }

  void leave(TaskId task) {
    std::uint32_t woken = sleeper(std::exchange(times_.of[task].end, now_));
    ++ended_;
    if (graph_.is_gated) dispatcher_.end(task);
    while (woken != kNoTask) check(std::exchange(woken, open_[woken].also_asleep));
    const TaskId after = graph_.places[task].after;
    if (after != kNoTask) open(after);
  }

  bool has_ended(TaskId task) const { return times_.of[task].end >= 0; }

  bool has_arrived(TaskId task) const { return !has_arrived_.empty() && has_arrived_[task]; }

  // Returns what holds up a task. Requires: the task is the next on its lane if the lane is in
  // order.
  Obstacle find_obstacle(TaskId task) const {
    const std::uint32_t checked = open_[slot_of(task)].checked;
    if (checked < graph_.places[task + 1].first_incoming) return incoming_[checked].on;
    if (!has_arrived(task)) return dispatcher_.find_obstacle(task);
    const Meeting& meeting = graph_.options.meetings[graph_.meeting_of[task]];
    return *std::find_if_not(meeting.begin(), meeting.end(),
                             [this](TaskId member) { return has_arrived(member); });
  }

  std::int64_t delay_of(const Dependency& dependency) const {
    return dependency.delay == kNoWork ? 0 : prices_[dependency.delay];
  }
  std::int64_t price_of(TaskId task) const { return noisy_(prices_[tasks_.work_of()[task]], task); }

  const EventGraph& graph_;
  const TaskGraph& tasks_;
  const Dependency* incoming_;
  EventTimes& times_;
  NoisyPrices noisy_;
  Flows flows_;
  Dispatcher dispatcher_;
  EventQueue queue_;
  std::vector<std::int64_t> prices_;  // by WorkId
  std::vector<Open> open_;            // by slot
  std::vector<std::size_t> arrived_;  // by meeting
  std::vector<bool> has_arrived_;     // by task; empty without meetings
  std::int64_t now_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace

void run_events(const EventGraph& graph, std::span<const Duration> prices, EventTimes& times,
                const Noise& noise, const std::function<std::string(TaskId)>& name_of) {
  EventRun engine(graph, prices, noise, times);
  engine.run();
  if (engine.is_done()) return;
  throw InfeasibleError(engine.describe(name_of));
}

EventTimes simulate_events(const TaskGraph& graph, std::span<const Duration> prices,
                           EventOptions options,
                           const std::function<std::string(TaskId)>& name_of) {
  EventTimes times;
  run_events(prepare_events(graph, std::move(options)), prices, times, {}, name_of);
  return times;
}

Duration latest_end(const EventTimes& times) {
  std::int64_t latest = 0;
  for (const TaskTimes& task : times.of) latest = std::max(latest, task.end);
  return Duration{latest};
}

}  // namespace frazil
