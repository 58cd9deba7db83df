#pragma once
// Normalisation by the statistics of slices. Where a stage shares every micro-batch by samples
// among its devices, batch normalisation knows the samples of its own slice alone. A run may take
// the mean and variance of the slice for those of the micro-batch, as the code of Pipe-BD does
// (Jang et al. 2023) and data parallelism without synchronised norms. Then what a run learns
// depends on how its plans slice: it is another computation than that of one device.

#include "exec/models/model.h"

namespace frazil {

// Returns the model with layers that may be given slices if all they mix is in training and in the
// statistics that they keep. Layers that mix samples otherwise stay as they are.
ModelSpec with_local_statistics(ModelSpec model);

}  // namespace frazil
