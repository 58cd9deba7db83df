#pragma once
// One interpreter starts the forwards of all stages of a pipeline, as torchgpipe's worker threads
// under Python's lock do: the F of a pipeline are launched one after the other, in the order of
// GPipe's clock (stage + micro-batch, then stage), and none starts on its device before its own
// launch. Backwards are started by a thread per device and cost nothing here; neither do frozen
// layers ahead of their pipeline, which are launched once for a whole batch.

#include "planner/lowering/lower.h"
#include "planner/plan/plan.h"
#include "profiles/units.h"

namespace frazil {

// Adds the launches to a lowered step: `of_layer` for each layer of a stage. Requires: a plan of
// whole stages, one device each.
void add_launches(LoweredStep& step, const Plan& plan, Duration of_layer);

}  // namespace frazil
