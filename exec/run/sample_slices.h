#pragma once
// What must hold of a model's layers for a stage to share the samples of a micro-batch among its
// devices (DeviceAxis::kSamples).

#include "exec/models/model.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

// Throws InfeasibleError, naming stage and layer, for a stage that would give a layer slices of
// what it mixes: of a frozen block what evaluation mixes, of any other what training does.
// `structure` is the model's.
void refuse_mixed_slices(const ModelSpec& model, const ModelProfile& structure, const Plan& plan);

}  // namespace frazil
