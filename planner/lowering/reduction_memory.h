#pragma once
// What gradients take of a device while a collective adds them, in logical bytes: more than its
// sums took before (planner/lowering/footprint.h) by what it receives and by the result. Held while
// the collective runs. Of n bytes of gradients, R owners, an owner's share s of about n/R and its k
// nodes of the tree (design page, "Gradient sum"):
//   exact  first its nodes and what has come for its share, k n + r s with r as
//          received_gradient_sets counts it, two halves being added in the place of one; then, its
//          nodes given up, its share's sum, the result and the largest share of another, n + s + s'
//   fast   the sum and the buffer that goes round the ring, 2 n; then never more
// Left out are the one tensor that an addition may need beside its halves, and what a peer that is
// slow to read still holds of a buffer given up here.

#include <vector>

#include "planner/plan/reduction_groups.h"
#include "planner/plan/tied_exchanges.h"
#include "profiles/units.h"

namespace frazil {

// Share `part` of `parts` of that many bytes of floats: contiguous, equal up to rounding to floats.
Bytes share_of_floats(Bytes size, std::size_t part, std::size_t parts);

// `nodes`: of each owner. `held`: what the owner in place `self` holds of these gradients anyway;
// the answer is what comes on top. Throws InputError where that is no quantity.
Bytes find_exact_reduction_memory(Bytes size, const std::vector<std::vector<TreeNode>>& nodes,
                                  std::size_t self, int micro_batches, Bytes held);
// Of its second part alone.
Bytes find_gather_memory(Bytes size, std::size_t owners, std::size_t self, Bytes held);
// Never less, in constant time: of an owner of `own` nodes while the others ship `received`.
Bytes bound_exact_reduction_memory(Bytes size, std::size_t owners, int own, int received,
                                   Bytes held);
Bytes find_ring_reduction_memory(Bytes size, Bytes held);

// Of a device in the collective of the group. The gather alone where nodes were shipped before.
Bytes find_reduction_memory(const ReductionGroup& group, const Plan& plan, DeviceId device);
Bytes find_gather_memory(const ReductionGroup& group, const Plan& plan, std::size_t self);

// On top of one sum for each use the device holds, of that many bytes each: sums of uses that it
// lacks, one at a time, and a total that cannot be added up in the place of a sum that is sent.
// `exchanges` are all of the plan.
Bytes find_tied_memory(const TiedExchange& exchange, const std::vector<TiedExchange>& exchanges,
                       const Plan& plan, const ModelProfile& profile, DeviceId device);

}  // namespace frazil
