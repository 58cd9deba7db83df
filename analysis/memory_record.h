#pragma once
// clang-format off
// Records what the devices of a run held in one step, predicted beside measured: logical bytes, as
// planner/lowering/footprint.h counts them. `frazil train --out` leaves the record of each phase as
// memory.json:
//   {"format": "frazil.memory", "version": 1, "step": 451, "process_peak_resident_bytes": 91234304,
//    "devices": [
//      {"name": "device0", "limit_bytes": 8388608,
//       "predicted": {"peak_bytes": 7015424, "parameters_bytes": 1234, ...,
//                     "curve": [[0, 1234], ...]},
//       "measured": {likewise, "allocator_peak_bytes": 7104512, "curve": [[0, 1234], ...]}},
//      ...]}
// A curve lists [ns since the step began, bytes from then on]. A device without "limit_bytes" has
// no limit (capacity).
// clang-format on

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/tables/table.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/setting.h"
#include "sim/memory.h"

namespace frazil {

struct HeldMemory {
  Bytes peak;                             // of the total
  std::array<Bytes, kMemoryKinds> kinds;  // the peak of each by itself
  std::vector<MemoryMoment> curve;        // of the total
  friend bool operator==(const HeldMemory&, const HeldMemory&) = default;
};

struct DeviceMemory {
  std::string name;
  std::optional<Bytes> limit;
  HeldMemory predicted;
  HeldMemory measured;
  Bytes allocator_peak;  // MeasuredMemory::allocator_peak in exec/measuring/memory_account.h
  friend bool operator==(const DeviceMemory&, const DeviceMemory&) = default;
};

struct MemoryRecord {
  Step step = 0;                // the measured one
  Bytes process_peak_resident;  // of the whole process, from its start to the end of that step
  std::vector<DeviceMemory> devices;
  friend bool operator==(const MemoryRecord&, const MemoryRecord&) = default;
};

// Returns a record with all that is predicted; what is measured is empty.
MemoryRecord predict_memory(const SimulatedStep& step, Setting setting);

// Writes and reads a record; a record survives the round trip. Throws InputError with file, line
// and path.
std::string to_json(const MemoryRecord& record);
MemoryRecord parse_memory_record(std::string_view text, const std::string& file);
// Returns none if the file is missing, as it is for a phase too short to be measured.
std::optional<MemoryRecord> read_memory_record(const std::filesystem::path& path);

// Returns one JSON object: what the file holds, without format, version and curves.
std::string peaks_json(const MemoryRecord& record);
// Returns a row for each kind that a device holds, for its peak, and for what its allocator handed
// out (against the predicted peak; none if 0), then one for the process; ratio = predicted /
// measured, "-" if nothing was measured.
Table tabulate_memory(const MemoryRecord& record);
// Returns the phases of a run at a glance: a row for each device of each phase, under the step that
// the phase begins with. "1.73 MiB": predicted and measured are equal; "5.09 / 4.52 MiB": they
// differ. Requires: no null record.
Table tabulate_memory(const std::vector<std::pair<Step, const MemoryRecord*>>& phases);

}  // namespace frazil
