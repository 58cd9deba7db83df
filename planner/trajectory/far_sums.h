#pragma once
// Sums and products of times that may be kFarAway, which stands for a way that cannot be taken: a
// sum stays at kFarAway once it is there, however much is added. So does what takes as long as
// kFarAway (36 years) or longer.

#include "profiles/units.h"

namespace frazil {

inline Duration add(Duration a, Duration b) {
  return a >= kFarAway || b >= kFarAway ? kFarAway : a + b;
}

// Returns the time of `count` steps. No step takes no time, even where a step cannot be taken.
inline Duration times(Duration step, Step count) {
  if (count == 0) return kNoTime;
  return step > kNoTime && count >= kFarAway / step ? kFarAway : step * count;
}

}  // namespace frazil
