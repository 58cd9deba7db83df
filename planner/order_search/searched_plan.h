#pragma once
// Searches the order of work of a plan: makes the times that the search sees from the plan, and an
// explicit schedule from the orders that the search finds.

#include <vector>

#include "planner/order_search/order_search.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

struct SearchedPlan {
  Plan plan;                         // the same but for its lists and its provenance
  std::vector<SearchedOrder> found;  // by pipeline; those of equal pipelines are equal
};

// Searches the order of each pipeline for itself, of equal pipelines once. The plan's named
// schedule says what a stage may hold: K micro-batches, each from its F to its W, as a simulated
// step counts them; with 2bp all micro-batches. (zb-1p and zb-2p themselves hold more than K where
// W is shorter than I: they count half of a micro-batch as free after its I.) A short
// last micro-batch counts as a whole one. provenance["schedule"] of the new plan tells of the
// search of the slowest pipeline. Throws InfeasibleError unless the schedule is one of these, the
// stages of each pipeline are in a line, one on each device, each has a backward and sends a
// gradient on, none recomputes, and pipelines share no device; also if the times add up to too
// much. Requires: a named schedule, and micro-batches in every pipeline.
SearchedPlan search_order(Plan plan, Setting setting, const OrderSearchOptions& options = {});

}  // namespace frazil
