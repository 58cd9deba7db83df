#pragma once
// Makes the orders that a search begins with: those of the linear family and of the zero-bubble
// heuristic within the least K of the stages, and those of list scheduling, which knows the K of
// each stage.
//
// List scheduling: whenever a device is free it starts the work that can start first: I before F
// before W, and an F only while fewer than a depth of micro-batches have had their F and not their
// I. No such order deadlocks: what stands in the way of an F has its I or W still to come, an I
// waits only for later stages, and on the last stage for nothing.

#include <vector>

#include "planner/order_search/order_timing.h"

namespace frazil {

// Returns the seeds. Not all need be legal: a family may hold more than a stage of this pipeline
// can.
std::vector<Words> make_seed_orders(const LinearPipeline& pipeline);

}  // namespace frazil
