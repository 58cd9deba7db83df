#pragma once
// Small models for tests: chains with given or uniform costs.

#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

// `layers` equal layers, one block each, an edge between neighbours, a loss on the last. Times at
// micro-batch size 1 and, in proportion, at 64; 1000 parameter bytes, 2000 optimizer bytes, 100
// stash bytes and a boundary of 10 bytes per sample each.
ModelProfile make_chain(int layers, Duration forward, Duration backward_input,
                        Duration backward_weight);

}  // namespace frazil
