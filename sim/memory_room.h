#pragma once
// Memory as room that tasks wait for: a task starts only where every device still has room for the
// most that the task will hold there, at its start or at its end. What it gives back it gives back
// at the moment it says, and so is not there for tasks that start earlier.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/task_graph.h"

namespace frazil {

// What tasks take and give, collected once per graph.
struct MemoryNeeds {
  struct Need {
    DeviceId device;
    std::int64_t at_start = 0;  // taken, or given where negative
    std::int64_t at_end = 0;    // given where negative, else 0
  };

  std::vector<std::uint32_t> first;  // of task t: needs[first[t]] up to needs[first[t + 1]]
  std::vector<Need> needs;
  std::vector<std::int64_t> room;  // by device, left by what is held from the start

  std::span<const Need> of(TaskId task) const {
    return std::span(needs).subspan(first[task], first[task + 1] - first[task]);
  }
};

// Devices beyond the end of `limits` have room for everything. Throws InfeasibleError where more is
// held from the start than the limit.
MemoryNeeds find_memory_needs(const TaskGraph& graph, std::span<const Bytes> limits);

class MemoryRoom {
 public:
  // `needs` must outlive this.
  explicit MemoryRoom(const MemoryNeeds& needs) : needs_(needs), room_(needs.room) {}

  // The first need of the task that finds no room; null when it may start.
  const MemoryNeeds::Need* find_lack(TaskId task) const;
  void start(TaskId task);
  void end(TaskId task);
  std::int64_t room(DeviceId device) const { return room_[device.index()]; }

 private:
  const MemoryNeeds& needs_;
  std::vector<std::int64_t> room_;
};

}  // namespace frazil
