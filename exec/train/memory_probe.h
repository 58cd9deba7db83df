#pragma once
// How fast devices of this process copy the state of layers into memory that is kept for it, as a
// transition does (exec/state/transition.h), and hash it.

#include "exec/run/run.h"
#include "planner/transitions/transition_cost.h"

namespace frazil {

// Of the weights of its layers, of which nothing is in the processor's caches: 64 MiB for each
// device are copied at most, 512 MiB hashed; medians of some rounds after a first one that does not
// count. Between steps.
OneMemory probe_memory(const Run& run);

// Reads and writes more than the processor's caches hold: what is timed next finds them as it does
// after a step of training.
void fill_processor_caches();

}  // namespace frazil
