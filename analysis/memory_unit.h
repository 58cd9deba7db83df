#pragma once
// Chooses the unit in which the bytes of one picture or table are told.

#include "profiles/units.h"

namespace frazil {

struct MemoryUnit {
  const char* word;
  double bytes;
};
// Returns the largest unit in which `most` is at least one, or bytes if there is none.
MemoryUnit choose_unit(Bytes most);

}  // namespace frazil
