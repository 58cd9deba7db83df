#pragma once
// The ring all-reduce of mode fast is a reduce-scatter followed by an all-gather, each in n - 1
// rounds of one share per device; each device sends 2 (n - 1) / n of the bytes (Patarasuk & Yuan
// 2009). Every share is completed on one device, so all owners end with the same bits. A world that
// has an all-reduce of its own (Communicator::sum_in_group) does it in the place of the ring.

#include "exec/communication/communicator.h"
#include "exec/measuring/reduction_meter.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// Returns the complete sums. `sums`: those of this owner; empty if it has none to add. `like`:
// tensors with the shapes of the sums. `tag.kind` and `tag.from` are overwritten. All owners must
// call it with equal arguments except `sums`. At most two copies of the sums are held at once
// (planner/lowering/reduction_memory.h).
Tensors reduce_in_ring(Tensors sums, const Tensors& like, const std::vector<DeviceId>& owners,
                       Communicator& communicator, Tag tag, const TellHeld& tell_held = {});

}  // namespace frazil
