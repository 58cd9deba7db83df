#pragma once
// Derives the masks of the controls `from-top` and `random-masks` from those of arm `all` under the
// same seed: at each step as many blocks are active, but other ones. The head is always active.
//   kReversed   the block below the head freezes first, block 0 last
//   kDrawn      blocks freeze in an order that is drawn by the seed, so that what is frozen stays
//               frozen wherever `all` only freezes

#include <cstdint>

#include "analysis/ablation/arm.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Returns a freeze trace with nothing but the derived masks, for policy `trace`. Learning rates of
// blocks are not taken over. Requires: kReversed or kDrawn.
FreezeTrace derive_masks(const FreezeTrace& of_all, ArmFacts::Masks masks, std::int64_t seed);

}  // namespace frazil
