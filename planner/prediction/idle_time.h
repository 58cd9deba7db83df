#pragma once
// Splits the makespan of each device to the nanosecond by where the time goes. Between two computes
// of a device, the next compute waits for its binding input: the input that arrives last (if
// several arrive together, the one whose producer ended last, then that of an F). The producer is
// the compute task that the input comes from, on another device. The wait until the producer ends
// is a wait for its stage; the rest until the arrival is communication that nothing hides (the turn
// on the link, the transfer, the hop). A W after its I, an R, and a boundary inside a device never
// wait.

#include <span>
#include <vector>

#include "planner/lowering/lower.h"
#include "sim/simulate.h"

namespace frazil {

struct DeviceTime {
  Duration compute{0};                // all tasks of the compute lane: F I W B R U and pairs
  Duration exposed_communication{0};  // from the end of the producer to the arrival
  Duration wait_upstream{0};          // before an F (of a pair, too): until the end of its producer
  Duration wait_downstream{0};        // before an I, a B or a W without I: until the same moment
  Duration update{0};  // before a U: the whole wait for its reduction or for the barrier
  // Before the first compute, whatever it waits for, without any: everything; and in a window
  // (planner/plan/step_window.h) the overhead before each step.
  Duration fill{0};
  Duration drain{0};  // after the last compute

  friend bool operator==(const DeviceTime&, const DeviceTime&) = default;
};

Duration total(const DeviceTime& time);
// Adds the times of all devices column by column.
DeviceTime sum(std::span<const DeviceTime> devices);

// Returns one entry per device, each with the makespan as its total. Requires: a step as lower()
// makes it; its simulation by simulate(), so that a device idles only for what its next task
// depends on; the `prices` (price_all, of_work) that the simulation was made from.
std::vector<DeviceTime> split_makespan(const LoweredStep& step, const Simulation& simulation,
                                       std::span<const Duration> prices, int devices);

}  // namespace frazil
