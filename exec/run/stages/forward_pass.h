#pragma once
// Runs the layers of a model forward in eval mode, each on one device that holds it: what
// evaluation and freeze signals need. No device needs the layers of another.

#include <functional>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/devices/compute_device.h"
#include "exec/models/model.h"
#include "exec/state/layer_state.h"
#include "exec/tensors/sample_source.h"
#include "exec/tensors/samples.h"

namespace frazil {

// The part of one device.
struct ForwardPart {
  const ModelSpec& model;
  const std::vector<LayerId>& layer_of;  // by layer: the layer of the run whose state it has
  const std::vector<DeviceId>& runs_on;  // by layer
  DeviceId device;
  const DeviceState& state;  // holds the layers that run on the device
  const ComputeDevice& compute;
};

// What a device calls with the outputs of each layer that it has run, and the micro-batch's number
// and samples (where the device computes).
using LayerVisitor = std::function<void(LayerId, int micro_batch, const Samples&, const Tensors&)>;

// Runs the device's layers on all samples, cut into micro-batches of `size` (the last may be
// shorter). All devices of the run call it at the same time with equal arguments; `number` tells
// calls apart in what is said of an error. Throws what the communicator throws.
void run_forward(const ForwardPart& part, const SampleSource& samples, int size,
                 Communicator& communicator, Step number, const LayerVisitor& visit);

}  // namespace frazil
