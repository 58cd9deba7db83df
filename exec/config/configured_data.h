#pragma once
// Makes the data that a run configuration names.

#include "exec/config/run_config.h"
#include "exec/data/dataset.h"

namespace frazil {

// Returns the data that a configuration names, with the validation samples taken from the training
// samples. Throws InputError if the data cannot be read or do not fit the model.
Dataset load_data(const RunConfig& config);

}  // namespace frazil
