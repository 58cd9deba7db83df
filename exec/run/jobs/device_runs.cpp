#include "exec/run/jobs/device_runs.h"

#include <algorithm>

namespace frazil {
namespace {

// Returns how many devices from `begin` on are in the same process.
std::size_t count_equal(const std::vector<int>& process_of, std::size_t begin) {
  std::size_t end = begin;
  while (end < process_of.size() && process_of[end] == process_of[begin]) ++end;
  return end - begin;
}

}  // namespace

std::vector<DeviceRun> to_device_runs(const std::vector<int>& process_of) {
  std::vector<DeviceRun> runs;
  for (std::size_t begin = 0; begin < process_of.size();) {
    const auto devices = static_cast<std::int32_t>(count_equal(process_of, begin));
    const std::int32_t process = process_of[begin];
    begin += static_cast<std::size_t>(devices);
    const bool goes_on = process >= 0 && !runs.empty() && runs.back().devices == devices &&
                         runs.back().first >= 0 &&
                         runs.back().first + runs.back().processes == process;
    if (goes_on) {
      ++runs.back().processes;
    } else {
      runs.push_back({process, 1, devices});
    }
  }
  return runs;
}

std::vector<int> from_device_runs(const std::vector<DeviceRun>& runs) {
  std::vector<int> process_of;
  for (const DeviceRun& run : runs) {
    const bool is_one = run.first == -1 && run.processes == 1;
    const bool are_some = run.first >= 0 && run.processes > 0 && run.first <= kMostListedDevices &&
                          run.processes <= kMostListedDevices;
    if (run.devices <= 0 || !(is_one || are_some)) throw WireError("found a run of no processes");
    const std::int64_t count = std::int64_t{run.processes} * run.devices;
    if (count > kMostListedDevices - static_cast<std::int64_t>(process_of.size())) {
      throw WireError("found more devices than any run has");
    }
    for (std::int32_t p = 0; p < run.processes; ++p) {
      process_of.insert(process_of.end(), static_cast<std::size_t>(run.devices), run.first + p);
    }
  }
  return process_of;
}

}  // namespace frazil
