#pragma once
// The order of messages for a transport without tags: there the k-th SEND from one device to
// another meets the k-th RECV, and the messages of a device may have to wait for each other in the
// order of its list (one stream). Both are safe when the lists run in lockstep to their end: every
// SEND stands still until its RECV is reached, every RECV until its SEND is.
//
// Schedules are completed ones; a message is known by stages, direction, micro-batch and slice.

#include "planner/actions/schedule.h"

namespace frazil {

// How a message and its RECV find each other: by tag; or the k-th sent from one device to another
// is the k-th received, as NCCL and MPI without tags do it. Then RECVs stand where that comes
// through.
enum class MessageOrder { kByTag, kAsSent };

// A completed schedule with other places for their RECVs, so that they run in lockstep. One action
// per device and round gives an order of all SENDs; in this order a RECV stands as late as it can:
// before the action that needs it, and before the next message of its device. Throws
// InfeasibleError when the lists wait for each other whatever the places.
Schedule order_receives(const Schedule& completed);

}  // namespace frazil
