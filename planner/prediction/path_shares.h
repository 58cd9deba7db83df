#pragma once
// What the critical path of a step is made of: each nanosecond of the makespan once, by kind of
// work; and how much of it each device does.

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
  Duration overheads{0};            // of a step
  std::vector<Duration> of_device;  // compute and overheads on it, by DeviceId

  friend bool operator==(const PathShares&, const PathShares&) = default;
};

// All but `of_device`; of the whole path it is the makespan.
Duration total(const PathShares& shares);

// `path` is that of `step` (find_critical_path), or a part of it.
PathShares share_out(std::span<const PathStep> path, const LoweredStep& step,
                     const Simulation& simulation, int devices);

}  // namespace frazil
