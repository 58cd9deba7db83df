#pragma once
// Memory as room that tasks wait for: a task starts only when every device still has room for the
// most that the task will hold there, at its start or at its end. A task gives memory back at the
// moment of its change, so tasks that start earlier cannot use it.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/task_graph.h"

namespace frazil {

// The memory that tasks take and give back, collected once per graph.
struct MemoryNeeds {
  struct Need {
    DeviceId device;
    std::int64_t at_start = 0;  // bytes taken; negative: given back
    std::int64_t at_end = 0;    // 0, or negative: bytes given back
  };

  std::vector<std::uint32_t> first;  // task t has needs[first[t]] up to needs[first[t + 1]]
  std::vector<Need> needs;
  std::vector<std::int64_t> room;  // by device: the limit less what is held from the start

  std::span<const Need> of(TaskId task) const {
    return std::span(needs).subspan(first[task], first[task + 1] - first[task]);
  }
};

// Collects the needs of a graph. Devices beyond the end of `limits` have room for everything.
// Throws InfeasibleError if a device holds more from the start than its limit.
MemoryNeeds find_memory_needs(const TaskGraph& graph, std::span<const Bytes> limits);

class MemoryRoom {
 public:
  // `needs` must outlive this.
  explicit MemoryRoom(const MemoryNeeds& needs) : needs_(needs), room_(needs.room) {}

  // Returns the task's first need that finds no room; null when the task may start.
  const MemoryNeeds::Need* find_lack(TaskId task) const;
  void start(TaskId task);
  void end(TaskId task);
  std::int64_t room(DeviceId device) const { return room_[device.index()]; }

 private:
  const MemoryNeeds& needs_;
  std::vector<std::int64_t> room_;
};

}  // namespace frazil
