#pragma once
// Gives a rank a device that is a stream of a GPU, in any world: what the rank sends has been
// computed, and what it receives lies where it computes.

#include <memory>

#include "exec/communication/communicator.h"
#include "exec/devices/compute_device.h"

namespace frazil {

// Wraps `communicator` so; returns it as it is if the device is a core.
std::unique_ptr<Communicator> on_device(std::unique_ptr<Communicator> communicator,
                                        const ComputeDevice& device);

}  // namespace frazil
