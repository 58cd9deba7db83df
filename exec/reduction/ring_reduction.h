#pragma once
// The ring all-reduce of mode fast: reduce-scatter, then all-gather, each in n - 1 rounds of one
// share per device, 2 (n - 1) / n of the bytes sent by each (Patarasuk & Yuan 2009). Every share is
// added in one place, so all owners end with the same bits.

#include "exec/communication/communicator.h"
#include "exec/measuring/reduction_meter.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// `sums` become the complete sums; empty: this owner has none to add. `like`: tensors with their
// shapes. `tag.kind` and `tag.from` are overwritten. All owners call it with equal arguments but
// `sums`. Held are never more than two copies (planner/lowering/reduction_memory.h).
Tensors reduce_in_ring(Tensors sums, const Tensors& like, const std::vector<DeviceId>& owners,
                       Communicator& communicator, Tag tag, const TellHeld& tell_held = {});

}  // namespace frazil
