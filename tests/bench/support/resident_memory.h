#pragma once
// Resident memory of this process, in bytes, as Linux counts it.

#include <cstdint>

namespace frazil {

std::int64_t resident_now();
// Since the start, or since forget_peak().
std::int64_t resident_peak();
// Hands free memory back first, so that a later peak is not made of what came before. False where
// the kernel does not let a process forget: then peaks are those since the start.
bool forget_peak();

}  // namespace frazil
