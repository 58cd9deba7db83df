#pragma once
// The two connections between two processes, so that a large reduction delays no activation.

#include <cstdint>

#include "exec/links/descriptor.h"

namespace frazil {

enum class LinkSocket : std::uint8_t {
  kSteps,  // what steps wait for
  kBulk
};

// The sockets to one process; both closed for the own process, or for one that is gone.
struct PeerSockets {
  Descriptor steps;
  Descriptor bulk;

  bool are_open() const { return steps.is_open() && bulk.is_open(); }
};

}  // namespace frazil
