#pragma once
// One interpreter starts the forwards of all stages of a pipeline, as torchgpipe's worker threads
// do under Python's global lock. The F of a pipeline are launched one after another, in the order
// of GPipe's clock (stage + micro-batch, then stage), and no F starts on its device before its own
// launch. Backwards are started by one thread per device and cost nothing here. Frozen layers that
// run ahead of their pipeline cost nothing either: they are launched once for a whole batch.

#include "planner/lowering/lower.h"
#include "planner/plan/plan.h"
#include "profiles/units.h"

namespace frazil {

// Adds the launches to a lowered step: each takes `of_layer` for each layer of its stage. Requires:
// a plan with one device per stage, and no slices.
void add_launches(LoweredStep& step, const Plan& plan, Duration of_layer);

}  // namespace frazil
