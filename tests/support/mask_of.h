#pragma once
// Makes freeze masks for tests from their bits.

#include "traces/freeze_mask.h"

namespace frazil {

inline FreezeMask mask_of(const char* bits) { return FreezeMask::parse(bits, "test", 0); }

}  // namespace frazil
