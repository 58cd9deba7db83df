#pragma once
// Makes curves of bytes over time.

#include <string>
#include <vector>

#include "analysis/memory_record.h"
#include "analysis/memory_unit.h"
#include "analysis/svg/svg.h"

namespace frazil {

// Returns a moment of a time line in milliseconds, for an axis.
inline double milliseconds_at(TimePoint time) { return to_ms(time.time_since_epoch()); }

// Returns a curve of `unit` over milliseconds. A long curve is thinned to what a picture can show:
// for each of some hundred stretches of time the most, and what is held at the end.
Series make_memory_series(const std::string& name, const std::vector<MemoryMoment>& curve,
                          const MemoryUnit& unit);

// Charts a device: the predicted and the measured curve, the peak that its allocator handed out,
// and its limit (capacity) if that is at most twice all of these.
Chart make_memory_chart(const DeviceMemory& device);

}  // namespace frazil
