#pragma once
// The options of the event engine, and a task graph prepared for them. Options left at their
// defaults limit nothing: then every task starts and ends as in the static engine.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/memory_room.h"
#include "sim/message_buffers.h"
#include "sim/sharing.h"
#include "sim/task_graph.h"

namespace frazil {

// Selects the task of a lane that runs next; ties go in issue order, that is by id.
enum class Dispatch : std::uint8_t {
  kInOrder,     // tasks run in the order in which they were added
  kFirstReady,  // the task that could start first
  kPriority,    // the task of the highest priority that could start
};

// The rules for Transfer tasks, beside the need of a free lane.
struct MessageRules {
  // A message that has its turn stops the sender's compute lane until the message has ended: the
  // lane's next task waits, and the message waits for the task that runs.
  bool block_sender = false;
  std::optional<int> buffers;  // per channel (sim/message_buffers.h); none: unlimited
};

struct EventOptions {
  Sharing sharing;
  std::vector<Meeting> meetings;  // no task is in two meetings
  MessageRules messages;
  std::vector<Bytes> memory_limits;      // by device; empty: no task waits for memory
  std::vector<Dispatch> dispatch;        // by lane; lanes beyond the end run in order
  std::vector<std::int32_t> priorities;  // by task; tasks beyond the end have 0
};

inline constexpr std::uint32_t kNoMeeting = std::numeric_limits<std::uint32_t>::max();

// A task graph ready to be run. Runs do not change it.
struct EventGraph {
  struct Place {
    // The next task of an in-order lane; kNoTask behind its last task and on other lanes.
    TaskId after = kNoTask;
    // The task's dependencies begin here in incoming() and end at the next task's.
    std::uint32_t first_incoming = 0;
  };

  const TaskGraph* graph = nullptr;  // must outlive this
  EventOptions options;
  std::vector<Place> places;              // by TaskId, and one more at the end
  std::vector<Dependency> sorted;         // by task; empty if the graph's own list is in that order
  std::vector<TaskId> first_of_lane;      // kNoTask for an empty lane
  std::vector<std::uint32_t> meeting_of;  // by task; empty without meetings
  std::vector<bool> is_plain;  // by work: the price holds and the work's tasks never meet others
  bool is_gated = false;    // something beside dependencies, lanes and meetings can hold up tasks
  bool is_dynamic = false;  // some lane is not in order
  MemoryNeeds memory;       // only with memory limits
  MessageRoutes messages;   // only with a number of buffers
  std::vector<LaneId> compute_lane;  // by device; kNoLane if the device has no such lane

  const Dependency* incoming() const {
    return sorted.empty() ? graph->dependencies().data() : sorted.data();
  }
  bool is_in_order(LaneId lane) const {
    return lane >= options.dispatch.size() || options.dispatch[lane] == Dispatch::kInOrder;
  }
};

// Prepares a graph, which must outlive the result. Throws InfeasibleError if a memory limit is
// below what is held from the start. Requires: lanes, works, tasks and devices named in graph and
// options exist; no task depends on itself.
EventGraph prepare_events(const TaskGraph& graph, EventOptions options);

}  // namespace frazil
