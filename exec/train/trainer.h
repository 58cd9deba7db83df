#pragma once
// The training loop: at each step boundary the freeze policy decides, the planner answers with the
// kept or a new plan, state moves in memory, new executors start. Records what was predicted and
// what happened, side by side.

#include <functional>

#include "exec/data/dataset.h"
#include "exec/train/train_options.h"
#include "exec/train/train_result.h"

namespace frazil {

// Requires: samples to validate with where a validation guard decides.
// Throws InfeasibleError when no plan fits, or the given one does not, before the first step;
// PeerLost when a device fails. Of a durable run: InputError where the journal cannot be written or
// a checkpoint that was asked for by `stop`; ReplayMismatch. One that fails in between is told of.
TrainResult train(const TrainOptions& options, const Dataset& data,
                  const std::function<void(const TrainProgress&)>& progress = {});

}  // namespace frazil
