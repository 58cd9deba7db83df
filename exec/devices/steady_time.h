#pragma once
// The clock of everything that is measured here.

#include <chrono>

#include "profiles/units.h"

namespace frazil {

using SteadyTime = std::chrono::steady_clock::time_point;

inline Duration since(SteadyTime start) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

}  // namespace frazil
