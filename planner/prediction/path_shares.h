#pragma once
// Divides the critical path of a step by kind of work, each nanosecond of the makespan once, and by
// device.

#include <array>
#include <span>
#include <vector>

#include "planner/lowering/lower.h"
#include "sim/critical_path.h"

namespace frazil {

struct PathShares {
  std::array<Duration, kActionKinds> compute{};  // by ActionKind: F I W B R U, a pair as its own
  Duration transfers{0};                         // messages holding a link
  Duration hops{0};                              // latencies
  Duration collectives{0};
  Duration overheads{0};            // step overheads
  std::vector<Duration> of_device;  // compute and overheads, by DeviceId

  friend bool operator==(const PathShares&, const PathShares&) = default;
};

// Adds everything but `of_device`. The total of a whole critical path is the makespan.
Duration total(const PathShares& shares);

// Divides `path`: the critical path of `step` (find_critical_path), or a part of that path.
PathShares share_out(std::span<const PathStep> path, const LoweredStep& step,
                     const Simulation& simulation, int devices);

}  // namespace frazil
