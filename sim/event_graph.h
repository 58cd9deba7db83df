#pragma once
// What the event engine may be told beside a task graph, and the graph made ready for it. Options
// left at their defaults bind nothing: then every task starts and ends as in the static engine.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/memory_room.h"
#include "sim/message_buffers.h"
#include "sim/sharing.h"
#include "sim/task_graph.h"

namespace frazil {

// Which task of a lane runs next; ties in issue order, that is by id.
enum class Dispatch : std::uint8_t {
  kInOrder,     // the order in which they were added
  kFirstReady,  // of those that could start, the one that could first
  kPriority,    // of those that could start, the one of the highest priority
};

// How Transfer tasks go, beside needing their lane.
struct MessageRules {
  // A message that has its turn stops the sender's compute lane until it is through: its next task
  // waits, the one that runs is waited for.
  bool block_sender = false;
  std::optional<int> buffers;  // per channel (sim/message_buffers.h); none: as many as wanted
};

struct EventOptions {
  Sharing sharing;
  std::vector<Meeting> meetings;  // no task in two of them
  MessageRules messages;
  std::vector<Bytes> memory_limits;      // by device; empty: no task waits for memory
  std::vector<Dispatch> dispatch;        // by lane; lanes beyond the end run in order
  std::vector<std::int32_t> priorities;  // by task; tasks beyond the end have 0
};

inline constexpr std::uint32_t kNoMeeting = std::numeric_limits<std::uint32_t>::max();

// Never changed by a run.
struct EventGraph {
  struct Place {
    TaskId after = kNoTask;  // on its lane, where that is in order; kNoTask behind its last
    std::uint32_t first_incoming = 0;  // up to that of the next
  };

  const TaskGraph* graph = nullptr;  // must outlive this
  EventOptions options;
  std::vector<Place> places;          // by TaskId, and one behind the last
  std::vector<Dependency> sorted;     // by task; empty where the graph's own list is in that order
  std::vector<TaskId> first_of_lane;  // kNoTask for an empty lane
  std::vector<std::uint32_t> meeting_of;  // by task; empty without meetings
  std::vector<bool> is_plain;  // by work: its price holds and its tasks never meet others
  bool is_gated = false;    // something beside dependencies, lanes and meetings can hold up tasks
  bool is_dynamic = false;  // some lane is not in order
  MemoryNeeds memory;       // with memory limits
  MessageRoutes messages;   // with a number of buffers
  std::vector<LaneId> compute_lane;  // by device, kNoLane without one

  const Dependency* incoming() const {
    return sorted.empty() ? graph->dependencies().data() : sorted.data();
  }
  bool is_in_order(LaneId lane) const {
    return lane >= options.dispatch.size() || options.dispatch[lane] == Dispatch::kInOrder;
  }
};

// Throws InfeasibleError where memory limits are below what is held from the start.
// Requires: lanes, works, tasks and devices named in graph and options exist; no task depends on
// itself.
EventGraph prepare_events(const TaskGraph& graph, EventOptions options);

}  // namespace frazil
