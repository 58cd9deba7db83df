#pragma once
// Where the time of each device goes: its makespan, split to the nanosecond. Between two computes
// of a device, the next one waits for its binding input: the one that arrives last (of several that
// arrive together the one whose producer ended last, then an F's). The producer is the compute task
// it comes from, on another device. The wait until the producer ends is a wait for that stage; what
// is left until the arrival is communication that nothing hides (its turn on the link, the
// transfer, the hop). A W after its I, an R, and a boundary inside a device never wait.

#include <span>
#include <vector>

#include "planner/lowering/lower.h"
#include "sim/simulate.h"

namespace frazil {

struct DeviceTime {
  Duration compute{0};                // all tasks of the compute lane: F I W B R U and pairs
  Duration exposed_communication{0};  // from the end of the producer to the arrival
  Duration wait_upstream{0};          // before an F (of a pair, too): until the end of its producer
  Duration wait_downstream{0};        // before an I or a B, or a W without I: likewise
  Duration update{0};  // before a U: the whole wait for its reduction or for the barrier
  Duration fill{0};    // before the first compute, whatever it waits for; without any: everything
  Duration drain{0};   // after the last compute

  friend bool operator==(const DeviceTime&, const DeviceTime&) = default;
};

Duration total(const DeviceTime& time);
// Column by column, over all devices.
DeviceTime sum(std::span<const DeviceTime> devices);

// One entry per device, each with the makespan as its total. `prices` (price_all, of_work) are
// those that `simulation` was made from. Requires: a step as lower() makes it, and its simulation
// by simulate(); so a device idles for nothing but what its next task depends on.
std::vector<DeviceTime> split_makespan(const LoweredStep& step, const Simulation& simulation,
                                       std::span<const Duration> prices, int devices);

}  // namespace frazil
