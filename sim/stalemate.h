#pragma once
// Why nothing moves any more, in one sentence.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>

#include "sim/task_graph.h"

namespace frazil {

// Memory that nobody gives back.
struct Lack {
  DeviceId device;
  std::int64_t needed = 0;  // bytes
  std::int64_t room = 0;
};

// What holds a task up: another task, or a lack of memory.
using Obstacle = std::variant<TaskId, Lack>;

// Follows the obstacles from the first of `held_up` on. They end in a circle, "deadlock: A waits
// for B waits for A" from its lowest id on, or at a lack of memory, "starvation: A waits for 3
// bytes on device 0, where 2 are free", with all those of `held_up` that lack some. Requires: not
// empty.
std::string describe_stalemate(std::span<const TaskId> held_up,
                               const std::function<Obstacle(TaskId)>& obstacle_of,
                               const std::function<std::string(TaskId)>& name_of);

}  // namespace frazil
