#include "sim/dispatcher.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "profiles/error.h"

namespace frazil {

Dispatcher::Dispatcher(const EventGraph& graph)
    : graph_(graph),
      lanes_(graph.graph->lanes().size()),
      waiting_(std::max(graph.compute_lane.size(), graph.memory.room.size())) {
  for (LaneId lane = 0; lane < lanes_.size(); ++lane) {
    if (graph.is_in_order(lane)) lanes_[lane].next = graph.first_of_lane[lane];
  }
  const EventOptions& options = graph.options;
  if (!options.memory_limits.empty()) room_.emplace(graph.memory);
  if (options.messages.buffers) buffers_.emplace(graph.messages, *options.messages.buffers);
}

bool Dispatcher::is_later(const Candidate& a, const Candidate& b) {
  return std::tie(a.key, a.task) > std::tie(b.key, b.task);
}

const Transfer* Dispatcher::message_of(TaskId task) const {
  return std::get_if<Transfer>(&graph_.graph->works()[graph_.graph->work_of()[task]]);
}

// Returns the compute lane that stands still for a message; none for a message that runs on that
// lane itself, and for other tasks.
LaneId Dispatcher::lane_to_stop(TaskId task) const {
  if (!graph_.options.messages.block_sender) return kNoLane;
  const Transfer* const message = message_of(task);
  if (message == nullptr || message->from.index() >= graph_.compute_lane.size()) return kNoLane;
  const LaneId lane = graph_.compute_lane[message->from.index()];
  return lane == lane_of(task) ? kNoLane : lane;
}

void Dispatcher::offer(TaskId task, std::int64_t now) {
  const LaneId id = lane_of(task);
  const EventOptions& options = graph_.options;
  Candidate candidate{.key = now, .since = now, .task = task};
  if (id < options.dispatch.size() && options.dispatch[id] == Dispatch::kPriority) {
    candidate.key = task < options.priorities.size() ? -options.priorities[task] : 0;
  }
  std::vector<Candidate>& offered = lanes_[id].offered;
  offered.push_back(candidate);
  std::push_heap(offered.begin(), offered.end(), is_later);
  look_at(id);
}

void Dispatcher::look_at(LaneId id) {
  LaneState& lane = lanes_[id];
  if (lane.is_due) return;
  lane.is_due = true;
  due_.push_back(id);
}

void Dispatcher::wake(DeviceId device) {
  std::vector<LaneId>& waiting = waiting_[device.index()];
  for (const LaneId lane : waiting) look_at(lane);
  waiting.clear();
}

bool Dispatcher::wait_on(DeviceId device, LaneId lane) {
  std::vector<LaneId>& waiting = waiting_[device.index()];
  if (waiting.empty() || waiting.back() != lane) waiting.push_back(lane);
  return false;
}

std::span<const TaskId> Dispatcher::start_tasks() {
  started_.clear();
  while (!due_.empty()) {
    sort_due();
    for (const Service& service : services_) claim(service.lane);
    for (const Service& service : services_) {
      // A start may wake lanes that come first; the other lanes are then sorted again with them.
      if (due_.empty()) {
        try_lane(service.lane);
      } else {
        look_at(service.lane);
      }
    }
  }
  return started_;
}

// Makes services of the due lanes that could start something, in the order in which they are
// served.
void Dispatcher::sort_due() {
  services_.clear();
  for (const LaneId id : due_) {
    LaneState& lane = lanes_[id];
    lane.is_due = false;
    if (!is_free(lane) || (!lane.claiming && lane.offered.empty())) continue;
    const Candidate& first = lane.claiming ? *lane.claiming : lane.offered.front();
    services_.push_back({lane_to_stop(first.task) == kNoLane, first.since, first.task, id});
  }
  due_.clear();
  std::sort(services_.begin(), services_.end());
}

// Lets the lane's first message stop its sender: all messages that have their turn at one time do
// so before any message starts.
void Dispatcher::claim(LaneId id) {
  const LaneState& lane = lanes_[id];
  if (!is_free(lane) || lane.claiming) return;
  if (lane_to_stop(lane.offered.front().task) != kNoLane) stop_sender(take_first(id), id);
}

Dispatcher::Candidate Dispatcher::take_first(LaneId id) {
  std::vector<Candidate>& offered = lanes_[id].offered;
  std::pop_heap(offered.begin(), offered.end(), is_later);
  const Candidate first = offered.back();
  offered.pop_back();
  return first;
}

void Dispatcher::try_lane(LaneId id) {
  LaneState& lane = lanes_[id];
  if (!is_free(lane)) return;
  if (lane.claiming) {
    try_task(Candidate{*lane.claiming}, id);
    return;
  }
  passed_over_.clear();
  while (!lane.offered.empty()) {
    const Candidate first = take_first(id);
    if (try_task(first, id) || lane.claiming) break;
    passed_over_.push_back(first);
  }
  for (const Candidate& candidate : passed_over_) {
    lane.offered.push_back(candidate);
    std::push_heap(lane.offered.begin(), lane.offered.end(), is_later);
  }
}

bool Dispatcher::try_task(const Candidate& candidate, LaneId id) {
  const TaskId task = candidate.task;
  const LaneId to_stop = lane_to_stop(task);
  if (to_stop != kNoLane) {
    stop_sender(candidate, id);
    if (lanes_[to_stop].running != kNoTask) return wait_on(device_of(to_stop), id);
  }
  const bool is_buffered = needs_buffer(task);
  if (is_buffered && !buffers_->has_room(task)) return wait_on(message_of(task)->to, id);
  const MemoryNeeds::Need* const lack = room_ ? room_->find_lack(task) : nullptr;
  if (lack != nullptr) return wait_on(lack->device, id);

  lanes_[id].running = task;
  lanes_[id].claiming.reset();
  if (is_buffered) buffers_->take(task);
  if (room_) take_memory(task);
  if (buffers_) take_messages(task);
  started_.push_back(task);
  return true;
}

// Lets a message claim its lane and stop its sender. The lane starts no other task from this turn
// on.
void Dispatcher::stop_sender(const Candidate& message, LaneId id) {
  if (lanes_[id].claiming) return;
  lanes_[id].claiming = message;
  ++lanes_[lane_to_stop(message.task)].stops;
}

// True if the task is a message whose receiver is not there.
bool Dispatcher::needs_buffer(TaskId task) const {
  const TaskId receiver = buffers_ ? graph_.messages.receiver[task] : kNoTask;
  if (receiver == kNoTask) return false;
  const LaneState& lane = lanes_[lane_of(receiver)];
  if (!is_free(lane)) return true;
  return graph_.is_in_order(lane_of(receiver)) && lane.next != receiver;
}

void Dispatcher::take_memory(TaskId task) {
  room_->start(task);
  for (const MemoryNeeds::Need& need : graph_.memory.of(task)) {
    if (need.at_start < 0) wake(need.device);
  }
}

void Dispatcher::take_messages(TaskId task) {
  bool any = false;
  for (auto i = graph_.places[task].first_incoming; i < graph_.places[task + 1].first_incoming;
       ++i) {
    const TaskId message = graph_.incoming()[i].on;
    if (graph_.messages.receiver[message] == task) any = buffers_->give_back(message) || any;
  }
  if (any) wake(device_of(lane_of(task)));
}

void Dispatcher::end(TaskId task) {
  const LaneId id = lane_of(task);
  LaneState& lane = lanes_[id];
  lane.running = kNoTask;
  lane.next = graph_.places[task].after;
  look_at(id);
  const LaneId stopped = lane_to_stop(task);
  if (stopped != kNoLane) {
    --lanes_[stopped].stops;
    look_at(stopped);
    wake(device_of(stopped));
  }
  if (room_) {
    room_->end(task);
    for (const MemoryNeeds::Need& need : graph_.memory.of(task)) wake(need.device);
  }
  wake(device_of(id));
}

Obstacle Dispatcher::find_obstacle(TaskId task) const {
  const LaneState& lane = lanes_[lane_of(task)];
  if (lane.running != kNoTask) return lane.running;
  if (lane.stops > 0) return find_stopper(lane_of(task));
  if (lane.claiming && lane.claiming->task != task) return lane.claiming->task;
  const LaneId to_stop = lane_to_stop(task);
  if (to_stop != kNoLane && lanes_[to_stop].running != kNoTask) return lanes_[to_stop].running;
  if (needs_buffer(task) && !buffers_->has_room(task)) return find_slow_receiver(task);
  const MemoryNeeds::Need* const lack = room_ ? room_->find_lack(task) : nullptr;
  ENSURE(lack != nullptr, "a task that is held up by something");
  return Lack{lack->device, lack->at_start, room_->room(lack->device)};
}

// Returns the receiver of a message that holds a buffer of the same channel, or, if none does, what
// keeps the message's own receiver away.
TaskId Dispatcher::find_slow_receiver(TaskId message) const {
  const MessageRoutes& routes = graph_.messages;
  for (TaskId other = 0; other < routes.receiver.size(); ++other) {
    if (buffers_->is_held(other) && routes.channel[other] == routes.channel[message]) {
      return routes.receiver[other];
    }
  }
  const LaneState& lane = lanes_[lane_of(routes.receiver[message])];
  if (lane.running != kNoTask) return lane.running;
  return lane.stops > 0 ? find_stopper(lane_of(routes.receiver[message])) : lane.next;
}

// Returns a message that stops the lane.
TaskId Dispatcher::find_stopper(LaneId stopped) const {
  for (const LaneState& lane : lanes_) {
    const TaskId message = lane.claiming ? lane.claiming->task : lane.running;
    if (message != kNoTask && lane_to_stop(message) == stopped) return message;
  }
  fail_ensure(__FILE__, __LINE__, "a lane that some message stops");
}

}  // namespace frazil
