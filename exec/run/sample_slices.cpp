#include "exec/run/sample_slices.h"

#include <string>

#include "planner/plan/activity.h"
#include "profiles/error.h"

namespace frazil {

void refuse_mixed_slices(const ModelSpec& model, const ModelProfile& structure, const Plan& plan) {
  const Activity activity = find_activity(structure, plan.mask);
  for (const Pipeline& pipeline : plan.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      if (pipeline.stages[s].axis != DeviceAxis::kSamples) continue;
      for_each_layer(pipeline.stages[s], [&](LayerId layer) {
        const LayerSpec& spec = model.layers[layer.index()];
        if (!mixes_samples(spec, activity.layers[layer.index()].trains)) return;
        const bool is_trained = spec.mixes_samples == SampleMixing::kInTraining;
        throw InfeasibleError("stage " + std::to_string(s) +
                              " shares the samples of a micro-batch among its devices, but layer " +
                              std::to_string(layer.value) + " (" + spec.name + ") mixes them" +
                              (is_trained ? " in training" : ""));
      });
    }
  }
}

}  // namespace frazil
