#pragma once
// Measures how fast the devices of this process copy the state of layers into memory that is kept
// for it, as a transition does (exec/state/layer_moves.h), and how fast one thread hashes the
// state.

#include "exec/measuring/processor_caches.h"
#include "exec/run/run.h"
#include "planner/transitions/transition_cost.h"

namespace frazil {

// Measures copying and hashing the weights of the run's layers. At most 64 MiB for each device are
// copied and 512 MiB hashed, but one layer always. The rates are medians over some rounds after a
// first one that does not count. `caches` are filled before each round that counts, so that no
// weight is in the processor's caches. Must be called between two steps.
OneMemory probe_memory(const Run& run, ProcessorCaches& caches);

}  // namespace frazil
