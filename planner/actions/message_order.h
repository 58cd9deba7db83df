#pragma once
// Orders messages for a transport without tags. There the k-th SEND from one device to another
// meets the k-th RECV, and the messages of a device may have to wait for each other in the order of
// its list (one stream). Neither does harm if the lists run in lockstep to their end, where every
// SEND stands still until its RECV is reached, and every RECV until its SEND is reached.
//
// All schedules here are completed; a message is known by stages, direction, micro-batch and slice.

#include "planner/actions/schedule.h"

namespace frazil {

// How a message and its RECV find each other. kByTag: by a tag. kAsSent: the k-th message sent from
// one device to another is the k-th received, as in NCCL and in MPI without tags; RECVs must then
// stand where order_receives() puts them.
enum class MessageOrder { kByTag, kAsSent };

// Returns the schedule with its RECVs at other places, so that the lists run in lockstep. Rounds
// with one action per device give an order of all SENDs. RECVs follow this order, each as late as
// it can: before the action that needs it, and before the next SEND of its device. Throws
// InfeasibleError if the lists wait for each other wherever the RECVs stand.
Schedule order_receives(const Schedule& completed);

}  // namespace frazil
