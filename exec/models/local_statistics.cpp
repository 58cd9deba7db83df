#include "exec/models/local_statistics.h"

namespace frazil {

// A layer without statistics of its own that mixes samples in training does something else with
// them than to normalise.
ModelSpec with_local_statistics(ModelSpec model) {
  for (LayerSpec& layer : model.layers) {
    if (layer.mixes_samples != SampleMixing::kInTraining || layer.statistics.empty()) continue;
    layer.mixes_samples = SampleMixing::kNever;
  }
  return model;
}

}  // namespace frazil
