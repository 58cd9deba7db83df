#pragma once
// Decides which tasks start. Each lane runs one task at a time of those whose dependencies are met,
// in the order of its dispatch rule. A task starts only when there is memory for it and, if it is a
// message, a buffer and a compute lane of the sender that stands still (both where the options ask
// for them). A task that finds no room holds up an in-order lane; on other lanes the next task is
// tried.
// At each moment all messages that have their turn first stop their senders. Then, again and again,
// the first task that may start does: such messages come first, then tasks by the time since when
// they wait, then in issue order.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/event_graph.h"
#include "sim/stalemate.h"

namespace frazil {

class Dispatcher {
 public:
  // `graph` must outlive this.
  explicit Dispatcher(const EventGraph& graph);

  // Says that `task` could start from `now` on: its dependencies are met, and on an in-order lane
  // all tasks before it have ended.
  void offer(TaskId task, std::int64_t now);
  // Starts all tasks that may start now and returns them, valid until the next call. Returns none
  // when nothing has changed.
  std::span<const TaskId> start_tasks();
  void end(TaskId task);

  // Returns what holds up a task that was offered and has not started. Requires: nothing runs that
  // could end.
  Obstacle find_obstacle(TaskId task) const;

 private:
  struct Candidate {
    std::int64_t key = 0;  // the lowest starts first, then the lowest task
    std::int64_t since = 0;
    TaskId task = 0;
  };
  struct Service {
    bool stops_nothing = false;  // false, and so first: a message that stops its sender
    std::int64_t since = 0;
    TaskId first = 0;
    LaneId lane = 0;
    friend auto operator<=>(const Service&, const Service&) = default;
  };
  struct LaneState {
    std::vector<Candidate> offered;     // a heap
    std::optional<Candidate> claiming;  // a message that stops the compute lane and must be next
    TaskId running = kNoTask;
    TaskId next = kNoTask;  // in-order lane: the first task that has not ended
    int stops = 0;          // messages that stop this lane
    bool is_due = false;
  };

  static bool is_later(const Candidate& a, const Candidate& b);
  static bool is_free(const LaneState& lane) { return lane.running == kNoTask && lane.stops == 0; }
  LaneId lane_of(TaskId task) const { return graph_.graph->lane_of()[task]; }
  DeviceId device_of(LaneId lane) const { return graph_.graph->lanes()[lane].device; }
  const Transfer* message_of(TaskId task) const;
  LaneId lane_to_stop(TaskId message) const;

  void look_at(LaneId lane);
  void wake(DeviceId device);
  bool wait_on(DeviceId device, LaneId lane);
  void sort_due();
  void claim(LaneId lane);
  Candidate take_first(LaneId lane);
  void try_lane(LaneId lane);
  bool try_task(const Candidate& candidate, LaneId lane);
  void stop_sender(const Candidate& message, LaneId lane);
  bool needs_buffer(TaskId task) const;
  void take_memory(TaskId task);
  void take_messages(TaskId task);
  TaskId find_slow_receiver(TaskId message) const;
  TaskId find_stopper(LaneId stopped) const;

  const EventGraph& graph_;
  std::vector<LaneState> lanes_;
  std::optional<MemoryRoom> room_;
  std::optional<MessageBuffers> buffers_;
  // The lanes, by device, with a task that may start when something on the device changes.
  std::vector<std::vector<LaneId>> waiting_;
  std::vector<LaneId> due_;  // lanes to look at
  std::vector<Service> services_;
  std::vector<Candidate> passed_over_;
  std::vector<TaskId> started_;
};

}  // namespace frazil
