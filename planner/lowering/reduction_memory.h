#pragma once
// Counts the logical bytes that gradients take on a device while a collective adds them. That is
// more than the device's sums took before (planner/lowering/footprint.h), by what the device
// receives and by the result, and lasts as long as the collective. For n bytes of gradients, R
// owners, an owner's share s of about n/R, the largest share s' of another owner, and the owner's k
// nodes of the tree (docs/architecture.md, "One gradient tree"):
//   exact  first the owner's nodes and what has come for its share, k n + r s with r as
//          sim/received_sets.h counts it, two halves being added in the place of one; then, the
//          nodes given up, the sum of its share, the result and the largest share of another owner,
//          n + s + s'
//   fast   the sum and the buffer that goes round the ring, 2 n; never more after that
// Two things are left out: the one tensor that an addition may need beside its halves, and the part
// of a buffer given up here that a slow peer has yet to read.

#include <vector>

#include "planner/plan/reduction_groups.h"
#include "planner/plan/tied_exchanges.h"
#include "profiles/units.h"
#include "sim/received_sets.h"

namespace frazil {

// Returns the bytes of share `part` of `parts` of `size` bytes of floats. Shares are contiguous and
// equal up to rounding to whole floats.
Bytes share_of_floats(Bytes size, std::size_t part, std::size_t parts);

// All functions below return the bytes that come on top of what the device already holds of these
// gradients, and throw InputError if these bytes are too many for a quantity.
//
// Returns the memory of an exact reduction for owner `self`, which already holds `held` bytes.
Bytes find_exact_reduction_memory(Bytes size, const ReceivedSets& received, std::size_t self,
                                  Bytes held);
// Returns the memory of the second part of an exact reduction alone, the gather.
Bytes find_gather_memory(Bytes size, std::size_t owners, std::size_t self, Bytes held);
// Bounds find_exact_reduction_memory from above in constant time, for an owner of `own` nodes while
// the other owners ship `received` nodes.
Bytes bound_exact_reduction_memory(Bytes size, std::size_t owners, int own, int received,
                                   Bytes held);
Bytes find_ring_reduction_memory(Bytes size, Bytes held);

// Returns the memory of each device in the collective of a group.
std::vector<Bytes> find_reduction_memory(const ReductionGroup& group, const Plan& plan);
// Returns the memory of the gather alone, if the nodes have been shipped before.
std::vector<Bytes> find_gather_memory(const ReductionGroup& group, const Plan& plan);

// Returns the memory of an exchange on a device, on top of one sum for each use that the device
// holds: sums of uses that it lacks, one at a time, and a total, if that cannot be added up in the
// place of a sum because the sum is sent. `exchanges` are all exchanges of the plan.
Bytes find_tied_memory(const TiedExchange& exchange, const std::vector<TiedExchange>& exchanges,
                       const Plan& plan, const ModelProfile& profile, DeviceId device);

}  // namespace frazil
