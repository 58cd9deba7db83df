#include "sim/event_graph.h"

#include <algorithm>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kMostTasks = std::size_t{1} << 31;

void check(const Dependency& dependency, const TaskGraph& graph) {
  ENSURE(dependency.task < graph.size() && dependency.on < graph.size(),
         "a dependency names an unknown task");
  ENSURE(dependency.task != dependency.on, "a task depends on itself");
  ENSURE(dependency.delay == kNoWork || dependency.delay < graph.works().size(),
         "a dependency names an unknown delay");
}

void add_incoming(EventGraph& made) {
  const TaskGraph& graph = *made.graph;
  const std::vector<Dependency>& all = graph.dependencies();
  ENSURE(graph.size() + graph.lanes().size() < kMostTasks && all.size() < kMostTasks,
         "tasks beyond 31-bit ids");
  made.places.resize(graph.size() + 1);
  bool in_order = true;
  TaskId previous = 0;
  for (const Dependency& dependency : all) {
    check(dependency, graph);
    in_order = in_order && previous <= dependency.task;
    previous = dependency.task;
    ++made.places[dependency.task + std::size_t{1}].first_incoming;
  }
  std::uint32_t sum = 0;
  for (EventGraph::Place& place : made.places) sum = place.first_incoming += sum;
  if (in_order) return;

  // The list is filled from behind, so that each task's end moves down to become its beginning.
  made.sorted.resize(all.size());
  for (auto dependency = all.rbegin(); dependency != all.rend(); ++dependency) {
    std::uint32_t& end = made.places[dependency->task + std::size_t{1}].first_incoming;
    made.sorted[--end] = *dependency;
  }
  for (std::size_t task = 0; task < graph.size(); ++task) {
    made.places[task].first_incoming = made.places[task + 1].first_incoming;
  }
  made.places.back().first_incoming = sum;
}

void add_lane_order(EventGraph& made) {
  const TaskGraph& graph = *made.graph;
  made.first_of_lane.assign(graph.lanes().size(), kNoTask);
  for (std::size_t task = graph.size(); task-- > 0;) {
    const LaneId lane = graph.lane_of()[task];
    ENSURE(lane < graph.lanes().size(), "a task names an unknown lane");
    ENSURE(graph.work_of()[task] < graph.works().size(), "a task names an unknown work");
    const TaskId next = std::exchange(made.first_of_lane[lane], static_cast<TaskId>(task));
    if (made.is_in_order(lane)) made.places[task].after = next;
  }
  for (LaneId lane = 0; lane < graph.lanes().size(); ++lane) {
    const TaskLane& at = graph.lanes()[lane];
    const std::size_t device = at.device.index();
    if (device >= made.compute_lane.size()) made.compute_lane.resize(device + 1, kNoLane);
    LaneId& compute = made.compute_lane[device];
    if (at.lane == Lane::kCompute && compute == kNoLane) compute = lane;
  }
}

void add_meetings(EventGraph& made) {
  const TaskGraph& graph = *made.graph;
  made.is_plain.resize(graph.works().size());
  for (WorkId work = 0; work < graph.works().size(); ++work) {
    made.is_plain[work] = !made.options.sharing.is_shared(work);
  }
  if (made.options.meetings.empty()) return;
  made.meeting_of.assign(graph.size(), kNoMeeting);
  for (std::size_t i = 0; i < made.options.meetings.size(); ++i) {
    ENSURE(!made.options.meetings[i].empty(), "a meeting of some tasks");
    for (const TaskId task : made.options.meetings[i]) {
      ENSURE(task < graph.size() && made.meeting_of[task] == kNoMeeting,
             "tasks in one meeting each");
      made.meeting_of[task] = static_cast<std::uint32_t>(i);
      made.is_plain[graph.work_of()[task]] = false;
    }
  }
}

}  // namespace

EventGraph prepare_events(const TaskGraph& graph, EventOptions options) {
  EventGraph made;
  made.graph = &graph;
  made.options = std::move(options);
  add_incoming(made);
  add_lane_order(made);
  add_meetings(made);

  const EventOptions& given = made.options;
  if (!given.memory_limits.empty()) made.memory = find_memory_needs(graph, given.memory_limits);
  if (given.messages.buffers) made.messages = find_message_routes(graph);
  made.is_dynamic = std::any_of(given.dispatch.begin(), given.dispatch.end(),
                                [](Dispatch dispatch) { return dispatch != Dispatch::kInOrder; });
  made.is_gated = made.is_dynamic || !given.memory_limits.empty() || given.messages.block_sender ||
                  given.messages.buffers.has_value();
  return made;
}

}  // namespace frazil
