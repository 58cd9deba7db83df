#pragma once
// Tells in which process each device is, by runs: as a list, it would be the longest message of a
// run of many processes. Neighbouring processes mostly have equally many devices, and those that
// are there no more, -1, are few.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/control/wire.h"

namespace frazil {

// Processes `first`, `first` + 1, ... (so many of them), each with so many devices.
struct DeviceRun {
  std::int32_t first = 0;
  std::int32_t processes = 0;
  std::int32_t devices = 0;
};

// More devices than any run has.
inline constexpr std::int64_t kMostListedDevices = 1 << 20;

std::vector<DeviceRun> to_device_runs(const std::vector<int>& process_of);
// Throws WireError for runs that no list has, or of more than kMostListedDevices.
std::vector<int> from_device_runs(const std::vector<DeviceRun>& runs);

template <class A>
void archive(A& a, DeviceRun& run) {
  a(run.first, run.processes, run.devices);
}

}  // namespace frazil
