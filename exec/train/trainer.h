#pragma once
// The training loop: at each step boundary the freeze policy decides, the planner answers with the
// held plan or a new one, state moves in memory, and new executors start. What was predicted is
// recorded beside what happened.

#include <functional>

#include "exec/data/dataset.h"
#include "exec/train/train_options.h"
#include "exec/train/train_result.h"

namespace frazil {

// Returns the length of the run that `options` ask for.
Step count_steps(const TrainOptions& options, const Dataset& data);

// Trains as `options` say and returns the result. A run whose steps were all done before is only
// evaluated again. Requires: samples to validate with if a validation guard decides. Throws
// InfeasibleError before the first step if no plan fits, or the given one does not; PeerLost if a
// device fails; Diverged if a loss, a gradient, a weight or a moment is not finite, before anything
// of that is kept. A durable run throws ReplayMismatch, and InputError if the journal, or a
// checkpoint that `stop` asked for, cannot be written; any other checkpoint that fails is told of
// in `progress`, which over processes is also called by another thread, for a process that is not
// heard of.
TrainResult train(const TrainOptions& options, const Dataset& data,
                  const std::function<void(const TrainProgress&)>& progress = {});

}  // namespace frazil
