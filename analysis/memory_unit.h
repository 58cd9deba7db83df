#pragma once
// The unit that bytes of one picture or table are told in.

#include "profiles/units.h"

namespace frazil {

struct MemoryUnit {
  const char* word;
  double bytes;
};
// The largest in which `most` is at least one.
MemoryUnit choose_unit(Bytes most);

}  // namespace frazil
