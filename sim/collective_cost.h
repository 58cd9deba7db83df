#pragma once
// clang-format off
// Closed forms of collectives on R devices with message size n (bytes), link latency a and
// bandwidth b; a is the largest latency and b the smallest bandwidth between any two of the
// devices. Links are full duplex and all devices enter together. Steps and bytes of the busiest
// device:
//   ring        2(R-1) steps, 2(R-1)/R n bytes (Patarasuk & Yuan 2009, JPDC 69(2))
//   tree        2 ceil(log2 R) steps of n bytes, binomial reduce (the root receives in every step)
//               then broadcast (the root sends in every step)
//               (Thakur, Rabenseifner, Gropp 2005, IJHPCA 19(1))
//   exact tree  every owner ships its maximal gradient nodes' share of n/R to every other owner,
//               adds on its own share, then all gather: 2(R-1) steps; owner o with k_o nodes sends
//               (R-1)(k_o + 1) n/R and receives (sum of the others' k + R - 1) n/R bytes. With
//               k_o = 1 this is the ring's traffic. (Nodes: sim/gradient_tree_shape.h.)
//   all gather  every device sends its share of n/R round the ring: R-1 steps, (R-1)/R n bytes.
//               In a partial gather not every share goes everywhere: `owned` tells how many shares
//               each device sends, then how many each receives, and each owner sends its shares
//               itself. Steps: the shares in the busier direction of the busiest device
// Time = steps x a + bytes / b. The bytes are those of the busier direction of the busiest device,
// as both directions work at once; for the tree they are those of both directions of the root, as
// the broadcast follows the reduce. R = 1 costs nothing.
// clang-format on

#include "profiles/cluster.h"
#include "sim/work.h"

namespace frazil {

struct CollectiveCost {
  int steps = 0;
  Bytes sent_by_busiest;      // the most that any device sends
  Bytes received_by_busiest;  // the most that any device receives
  Duration time{0};
};

// Returns the share n/R of a message, rounded up to whole bytes.
Bytes share_among(Bytes size, std::size_t devices);

// Returns the cost by the formulas above, with shares from share_among(). (An executor's shares
// hold whole floats and differ by less than one float.) Requires: at least one device; `owned` with
// one entry per device for kExactTreeAllReduce, none or two per device for kAllGather, each >= 0.
CollectiveCost collective_cost(const Collective& collective, const Cluster& cluster);

}  // namespace frazil
