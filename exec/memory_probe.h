#pragma once
// How fast devices of this process copy the state of layers into memory that is kept for it, as a
// transition does (exec/transition.h), and hash it.

#include "exec/model.h"
#include "planner/trajectory/transition_cost.h"

namespace frazil {

// Of stand-ins for the model's layers, 64 MiB for each device at most: medians of some rounds after
// a first one that does not count.
OneMemory probe_memory(const ModelSpec& model, int devices);

// Reads and writes more than the processor's caches hold: what is timed next finds them as it does
// after a step of training.
void fill_processor_caches();

}  // namespace frazil
