#pragma once
// Closed forms of collectives on R devices with message size n (bytes), link latency a and
// bandwidth b, links full duplex, all devices entering together. Steps, bytes sent by the busiest
// device, time:
//   ring        2(R-1) steps, 2(R-1)/R n bytes (Patarasuk & Yuan 2009, JPDC 69(2))
//   tree        2 ceil(log2 R) steps of n bytes, binomial reduce (the root receives in every step)
//               then broadcast (the root sends in every step)
//               (Thakur, Rabenseifner, Gropp 2005, IJHPCA 19(1))
//   exact tree  every owner ships its maximal gradient nodes' share of n/R to each other, adds on
//               its own share, then all gather: 2(R-1) steps; owner o with k_o nodes sends
//               (R-1)(k_o + 1) n/R and receives (sum of the others' k + R - 1) n/R bytes. With
//               k_o = 1 this is the ring's traffic. (Design page, "Gradient sum".)
//   all gather  every device sends its share of n/R round the ring: R-1 steps, (R-1)/R n bytes.
//               Of one in part, where not every share goes everywhere, `owned` tells how many
//               shares each device sends, then how many each receives: as many steps as the busier
//               direction of the busiest device has shares, each sent by its owner itself
// Time = steps x a + bytes / b, where bytes are those of the busier direction of the busiest device
// (but for the tree: both directions work at once) or of both directions of the root (tree: the
// broadcast follows the reduce). R = 1 costs nothing.
// a is the largest latency and b the smallest bandwidth between any two of the devices.

#include "profiles/cluster.h"
#include "sim/work.h"

namespace frazil {

struct CollectiveCost {
  int steps = 0;
  Bytes sent_by_busiest;      // most that any device sends
  Bytes received_by_busiest;  // most that any device receives
  Duration time{0};
};

// A share n/R of a message, rounded up to whole bytes.
Bytes share_among(Bytes size, std::size_t devices);

// Shares n/R are rounded up to whole bytes; an executor's, of whole floats, differ by less than one
// float. Requires: for kExactTreeAllReduce one `owned` entry per device, for kAllGather none or
// two, each >= 0.
CollectiveCost collective_cost(const Collective& collective, const Cluster& cluster);

}  // namespace frazil
