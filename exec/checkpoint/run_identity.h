#pragma once
// Says which run a checkpoint belongs to.

#include "exec/checkpoint/checkpoint_file.h"
#include "exec/config/run_config.h"
#include "exec/data/dataset.h"

namespace frazil {

// Returns the identity of a run of `steps` steps: hashes over all that decides its bits, which is
// model, settings, seed, start weights that a file gives, and the samples to train and to validate
// with; in bf16 also the processor's instructions for it, by which oneDNN chooses kernels that
// nothing else names. It leaves out where files and traces lie, how messages are ordered and
// awaited, and plan and devices. Throws InputError for a file that cannot be read.
RunIdentity identify_run(const RunConfig& config, const std::string& model_hash,
                         const Dataset& data, Step steps);

}  // namespace frazil
