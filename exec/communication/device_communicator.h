#pragma once
// Gives ranks devices that are streams of GPUs, in any world. What a rank sends may be read as soon
// as it has been computed, and what it receives lies where it computes. Between the GPUs of a
// process nobody waits for that but the receiver's stream, by an event.

#include <memory>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/devices/compute_device.h"

namespace frazil {

// Wraps the communicators of this process's devices so, device by device; returns them as they are
// if the devices are cores. Before a message leaves for a rank that is not among them, the host
// waits for the device.
std::vector<std::unique_ptr<Communicator>> on_devices(
    std::vector<std::unique_ptr<Communicator>> communicators, const ComputeDevices& devices);

}  // namespace frazil
