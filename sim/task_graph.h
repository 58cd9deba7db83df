#pragma once
// A graph of work: tasks on lanes, each priced by an entry of a small work table, with dependencies
// that may carry a delay. The structure stays while prices change, so one graph is evaluated many
// times. A lane runs one task at a time, in the order in which its tasks were added (the event
// engine has other orders too, sim/event_graph.h).

#include <cstdint>
#include <limits>
#include <vector>

#include "profiles/units.h"
#include "sim/work.h"
#include "traces/timeline.h"

namespace frazil {

using TaskId = std::uint32_t;
using LaneId = std::uint32_t;
using WorkId = std::uint32_t;
inline constexpr WorkId kNoWork = std::numeric_limits<WorkId>::max();
inline constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();
inline constexpr LaneId kNoLane = std::numeric_limits<LaneId>::max();

struct TaskLane {
  DeviceId device;
  Lane lane = Lane::kCompute;
};

struct Dependency {
  TaskId task = 0;
  TaskId on = 0;           // start(task) >= end(on) + price(delay)
  WorkId delay = kNoWork;  // no delay
};

enum class MemoryKind : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kStash,
  kReceive,
  kCache
};
inline constexpr int kMemoryKinds = 6;

// `delta` bytes appear (or, negative, go) on a device when a task starts or ends.
struct MemoryChange {
  enum class When : std::uint8_t { kStart, kEnd };
  TaskId task = 0;
  When when = When::kStart;
  DeviceId device;
  MemoryKind kind = MemoryKind::kStash;
  std::int64_t delta = 0;
};

class TaskGraph {
 public:
  void reserve(std::size_t tasks, std::size_t dependencies);

  LaneId add_lane(DeviceId device, Lane lane);
  WorkId add_work(Work work);
  TaskId add_task(LaneId lane, WorkId work) {
    lane_of_.push_back(lane);
    work_of_.push_back(work);
    return static_cast<TaskId>(lane_of_.size() - 1);
  }
  // `on` may be a task added later.
  void add_dependency(TaskId task, TaskId on, WorkId delay = kNoWork) {
    dependencies_.push_back({task, on, delay});
  }
  // Add bytes held from the first instant on, and changes along the way.
  void hold(DeviceId device, MemoryKind kind, Bytes size);
  void change_memory(const MemoryChange& change) { memory_changes_.push_back(change); }

  std::size_t size() const { return lane_of_.size(); }
  const std::vector<TaskLane>& lanes() const { return lanes_; }
  const std::vector<Work>& works() const { return works_; }
  const std::vector<LaneId>& lane_of() const { return lane_of_; }
  const std::vector<WorkId>& work_of() const { return work_of_; }
  const std::vector<Dependency>& dependencies() const { return dependencies_; }

  struct Held {
    DeviceId device;
    MemoryKind kind;
    Bytes size;
  };
  const std::vector<Held>& held() const { return held_; }
  const std::vector<MemoryChange>& memory_changes() const { return memory_changes_; }

 private:
  std::vector<TaskLane> lanes_;
  std::vector<Work> works_;
  std::vector<LaneId> lane_of_;
  std::vector<WorkId> work_of_;
  std::vector<Dependency> dependencies_;
  std::vector<Held> held_;
  std::vector<MemoryChange> memory_changes_;
};

}  // namespace frazil
