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
// if the devices are cores. Messages to and from ranks that are not among them go through the host,
// which waits for them, unless the world itself carries the tensors of GPUs, as NCCL does.
std::vector<std::unique_ptr<Communicator>> on_devices(
    std::vector<std::unique_ptr<Communicator>> communicators, const ComputeDevices& devices,
    bool carries_gpu_tensors = false);

}  // namespace frazil
