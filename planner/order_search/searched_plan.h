#pragma once
// A plan whose order of work is searched: from the plan, what the search sees as times; from what
// it finds, a schedule given outright.

#include <vector>

#include "planner/order_search/order_search.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct SearchedPlan {
  Plan plan;  // the same but for its lists, and its provenance, which says how they were found
  std::vector<SearchedOrder> found;  // by pipeline; those of equal pipelines are equal
};

// The plan's named schedule says what a stage may hold: with zb-h1 or zb-h2 K micro-batches until
// their W, with zb-1p or zb-2p half of each is free after I. Each pipeline is searched for itself,
// equal ones once. Throws InfeasibleError where stages are not in a line, one on each device, with
// a backward each, or recompute, and where pipelines share a device. A short last micro-batch
// counts as a whole one.
SearchedPlan search_order(Plan plan, const ModelProfile& profile, const Cluster& cluster,
                          const OrderSearchOptions& options = {});

}  // namespace frazil
