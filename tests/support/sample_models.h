#pragma once
// Makes small models for tests: chains with uniform costs.

#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

// Makes `layers` equal layers, one block each, with an edge between neighbours and a loss on the
// last. Times are those at micro-batch size 1 and, in proportion, at 64. Each layer has 1000
// parameter bytes, 2000 optimizer bytes, and per sample 100 stash bytes (saved activations) and a
// boundary of 10 bytes.
ModelProfile make_chain(int layers, Duration forward, Duration backward_input,
                        Duration backward_weight);

}  // namespace frazil
