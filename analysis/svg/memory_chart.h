#pragma once
// Bytes over time as curves.

#include <string>
#include <vector>

#include "analysis/memory_record.h"
#include "analysis/memory_unit.h"
#include "analysis/svg/svg.h"

namespace frazil {

// Milliseconds against `unit`; of a long curve what a picture can show: within each of some hundred
// stretches of time the most, and what is held at its end.
Series make_memory_series(const std::string& name, const std::vector<MemoryMoment>& curve,
                          const MemoryUnit& unit);

// Of a device: the predicted and the measured curve, what its allocator handed out at most, and its
// limit where it is at most twice all of these.
Chart make_memory_chart(const DeviceMemory& device);

}  // namespace frazil
