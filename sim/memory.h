#pragma once
// Memory over simulated time, in logical bytes per device: the bytes held from the start plus the
// changes of tasks. At equal times the ends of tasks that took time count first, all together; then
// the tasks that start, one after another in sweep order, and a task without duration starts and
// ends before the next. Changes of one task at one moment count together. Holding less than nothing
// is a bug of the caller.

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "profiles/units.h"
#include "sim/static_engine.h"
#include "sim/task_graph.h"

namespace frazil {

struct MemoryPeak {
  Bytes total;
  TimePoint at;                          // first moment of the peak
  std::array<Bytes, kMemoryKinds> held;  // by MemoryKind, at that moment
};

std::string_view memory_kind_name(MemoryKind kind);

// A device holds `total` from `at` on until its next moment.
struct MemoryMoment {
  TimePoint at;
  Bytes total;
  friend bool operator==(const MemoryMoment&, const MemoryMoment&) = default;
};

// A curve begins at time 0. Each time at which something changes has one moment with the most that
// is held then and, if less stays, a second moment with what stays.
struct MemoryTrace {
  std::vector<MemoryMoment> curve;
  std::array<Bytes, kMemoryKinds> most;  // each kind's own peak
};

// Return the curve and the peak of each device 0..devices-1.
std::vector<MemoryTrace> trace_memory(const TaskGraph& graph, const CompiledGraph& compiled,
                                      const SweepTimes& times, std::span<const Duration> prices,
                                      int devices);
std::vector<MemoryPeak> peak_memory(const TaskGraph& graph, const CompiledGraph& compiled,
                                    const SweepTimes& times, std::span<const Duration> prices,
                                    int devices);

}  // namespace frazil
