#pragma once
// The two connections between two processes: what a step waits for never stands behind bulk.

#include <cstdint>

#include "exec/links/descriptor.h"

namespace frazil {

enum class PeerLink : std::uint8_t {
  kSteps,  // activations, their gradients, norms
  kBulk    // gradients of parameters, layer state, features
};

struct PeerSockets {
  Descriptor steps;
  Descriptor bulk;

  bool are_open() const { return steps.is_open() && bulk.is_open(); }
};

}  // namespace frazil
