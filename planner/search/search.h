#pragma once
// The search for the best plan: pipeline length, replicas (equally long or not), micro-batch size,
// schedule, chunks, micro-batches in flight, the order of unequal devices, recomputing. Plans are
// proposed (planner/search/propose.h), bounded and simulated, those with the lowest bound first,
// while they can still be among the best (planner/search/best_first.h). What is left out keeps its
// reason. One thread; equal input gives equal bytes.

#include <memory>

#include "planner/bounds/search_options.h"
#include "planner/prediction/ranking.h"

namespace frazil {

// Micro-batches are dealt in contiguous shares, equal up to one among equal groups of devices.
// Devices left over stay idle.
Ranking search_plans(const ModelProfile& profile, const Cluster& cluster,
                     const SearchOptions& options);

class OrderTable;

// The same, asked again and again, as under one mask after the other: what does not depend on the
// mask is worked out once and kept. Of one thread at a time.
class PlanSearch {
 public:
  // Both must outlive this.
  PlanSearch(const ModelProfile& profile, const Cluster& cluster);
  ~PlanSearch();

  Ranking search(const SearchOptions& options);

 private:
  const ModelProfile& profile_;
  const Cluster& cluster_;
  std::unique_ptr<OrderTable> orders_;
};

}  // namespace frazil
