#pragma once
// Measures the resident memory of this process, in bytes, as Linux counts it.

#include <cstdint>

namespace frazil {

std::int64_t resident_now();
// Returns the peak since the start of the process, or since forget_peak().
std::int64_t resident_peak();
// Resets the peak; hands free memory back first, so that a later peak does not include earlier use.
// Returns false if the kernel does not let a process reset its peak: peaks then count from the
// start.
bool forget_peak();

}  // namespace frazil
