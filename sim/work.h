#pragma once
// Work that takes time on a cluster, not yet priced. It knows layers, devices and bytes, but no
// pipelines, plans or tensors.

#include <cstdint>
#include <variant>
#include <vector>

#include "profiles/units.h"

namespace frazil {

enum class LayerPart : std::uint8_t {
  kForward,
  kForwardFrozen,        // no backward will follow
  kBackwardInput,        // I (dgrad)
  kBackwardWeight,       // W (wgrad)
  kBackwardWeightAlone,  // W of a layer whose inputs need no gradient
  kUpdate,
};

struct LayerWork {
  LayerId layer;
  LayerPart part = LayerPart::kForward;
  friend bool operator==(const LayerWork&, const LayerWork&) = default;
};

// Parts of layers that one device runs one after another on one micro-batch. `goes_on` marks a
// piece of an action that has begun and so has no overhead of its own.
struct Compute {
  DeviceId device;
  int micro_batch_size = 1;
  std::vector<LayerWork> parts;
  bool goes_on = false;
  friend bool operator==(const Compute&, const Compute&) = default;
};

// Two computes that one device runs as one piece of work: an overlapped forward and backward. It
// takes as long as both, one after the other.
struct ComputePair {
  Compute first;
  Compute second;
  friend bool operator==(const ComputePair&, const ComputePair&) = default;
};

// The time a message holds its link (size / bandwidth); latency is a delay on the dependency.
struct Transfer {
  DeviceId from;
  DeviceId to;
  Bytes size;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// The latency of a link, as a delay on a dependency.
struct Hop {
  DeviceId from;
  DeviceId to;
  friend bool operator==(const Hop&, const Hop&) = default;
};

enum class CollectiveKind : std::uint8_t {
  kRingAllReduce,
  kTreeAllReduce,
  kExactTreeAllReduce,
  kAllGather
};

// An all-reduce, or a gather of everyone's share, of `size` bytes over `devices`, entered together.
// For the exact tree `owned` holds each device's number of maximal gradient nodes
// (sim/gradient_tree_shape.h); for a partial gather, what sim/collective_cost.h says.
struct Collective {
  CollectiveKind kind = CollectiveKind::kRingAllReduce;
  std::vector<DeviceId> devices;
  Bytes size;
  std::vector<int> owned;
  friend bool operator==(const Collective&, const Collective&) = default;
};

// A fixed time: host work, overheads, what-ifs.
struct Fixed {
  Duration duration{0};
  friend bool operator==(const Fixed&, const Fixed&) = default;
};

using Work = std::variant<Fixed, Compute, ComputePair, Transfer, Hop, Collective>;

}  // namespace frazil
