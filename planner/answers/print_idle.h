#pragma once
// Prints where the time of a simulated step went, for people (a table, a line) and for programs
// (JSON). Times in the table are in ms with three decimals and in percent of the makespan with one,
// each rounded by itself; the JSON has whole ns.

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "planner/prediction/idle_time.h"
#include "planner/prediction/path_shares.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/cluster.h"
#include "profiles/setting.h"

namespace frazil {

// The parts of a device's time, with their words in tables and their keys in JSON.
struct TimePart {
  std::string_view title;
  std::string_view key;
  Duration DeviceTime::*part;
};
inline constexpr std::array kTimeParts = {
    TimePart{"compute", "compute_ns", &DeviceTime::compute},
    TimePart{"exposed comm", "exposed_communication_ns", &DeviceTime::exposed_communication},
    TimePart{"wait upstream", "wait_upstream_ns", &DeviceTime::wait_upstream},
    TimePart{"wait downstream", "wait_downstream_ns", &DeviceTime::wait_downstream},
    TimePart{"update", "update_ns", &DeviceTime::update},
    TimePart{"fill", "fill_ns", &DeviceTime::fill},
    TimePart{"drain", "drain_ns", &DeviceTime::drain},
};

// Returns a row per device and one for all together; leaves out columns that are 0 in every row.
std::string print_idle_time(std::span<const DeviceTime> devices, const Cluster& cluster);
// Returns {"devices": [{"name", "compute_ns", "exposed_communication_ns", ...}], "all": {...}}.
std::string idle_time_json(std::span<const DeviceTime> devices, const Cluster& cluster);

// Returns a line such as
//   critical path 20.000 ms: F 6.000 ms, B 12.000 ms, hops 2.000 ms; on device0 6.000 ms, ...
// It names at most eight devices, those with the largest shares.
std::string print_critical_path(const PathShares& shares, const Cluster& cluster);
// Returns the shares, and every step of the path with its action, its times and why it started when
// it did.
std::string critical_path_json(std::span<const PathStep> path, const LoweredStep& step,
                               const Simulation& simulation, const Cluster& cluster);

// Returns the idle time and the critical path of a simulated step.
std::string print_explanation(const SimulatedStep& simulated, Setting setting);
// Returns {"idle_time": ..., "critical_path": ...}.
std::string explanation_json(const SimulatedStep& simulated, Setting setting);

}  // namespace frazil
