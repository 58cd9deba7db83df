#pragma once
// Which run a checkpoint belongs to.

#include "exec/checkpoint/checkpoint_file.h"
#include "exec/config/run_config.h"
#include "exec/data/dataset.h"

namespace frazil {

// Over all that decides the bits of a run of `steps` steps: model, settings, seed, the samples to
// train and to validate with; not where data and traces lie, nor how messages are ordered and
// awaited, nor plan and devices.
RunIdentity identify_run(const RunConfig& config, const std::string& model_hash,
                         const Dataset& data, Step steps);

}  // namespace frazil
