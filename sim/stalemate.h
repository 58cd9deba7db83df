#pragma once
// Says in one sentence why no task can go on.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>

#include "sim/task_graph.h"

namespace frazil {

// A lack of memory that nobody gives back.
struct Lack {
  DeviceId device;
  std::int64_t needed = 0;  // bytes
  std::int64_t room = 0;    // bytes
};

// An obstacle holds a task up: another task, or a lack of memory.
using Obstacle = std::variant<TaskId, Lack>;

// Follows the obstacles from the first task of `held_up` on and describes their end. A circle is
// "deadlock: A waits for B waits for A", from its lowest id on. A lack of memory is "starvation: A
// waits for 3 bytes on device 0, where 2 are free", with all tasks of `held_up` that lack memory.
// At most six tasks are named. Requires: `held_up` is not empty.
std::string describe_stalemate(std::span<const TaskId> held_up,
                               const std::function<Obstacle(TaskId)>& obstacle_of,
                               const std::function<std::string(TaskId)>& name_of);

}  // namespace frazil
