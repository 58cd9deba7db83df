#pragma once
// A rank whose device is a stream of a GPU, in any world: what it sends has been computed, what it
// receives is where it computes.

#include <memory>

#include "exec/communication/communicator.h"
#include "exec/devices/compute_device.h"

namespace frazil {

// `communicator` itself where the device is a core.
std::unique_ptr<Communicator> on_device(std::unique_ptr<Communicator> communicator,
                                        const ComputeDevice& device);

}  // namespace frazil
