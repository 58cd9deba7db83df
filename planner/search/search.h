#pragma once
// The search for the best plan, over pipeline length, replicas (equally long or not), micro-batch
// size, schedule, chunks, micro-batches in flight, the order of unequal devices, and recomputing
// (activation checkpointing). Plans are proposed (planner/search/propose.h), bounded and simulated,
// those with the lowest bound first, while they can still be among the best
// (planner/search/best_first.h). With a shared effort, plans with stages on several devices follow
// (planner/search/shared_stages.h). What is left out keeps its reason. The search is one thread;
// equal input gives equal bytes.

#include <memory>

#include "planner/bounds/search_options.h"
#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

// Searches for the best plans. Micro-batches are dealt in contiguous shares, which differ by one at
// most among equal groups of devices. Devices left over stay idle.
Ranking search_plans(Setting setting, const SearchOptions& options);

class OrderTable;

// The same search, asked again and again, such as under one mask after the other: what does not
// depend on the mask is worked out once and kept. One thread uses it at a time.
class PlanSearch {
 public:
  // The profile and the cluster must outlive this.
  explicit PlanSearch(Setting setting);
  ~PlanSearch();

  Ranking search(const SearchOptions& options);
  Setting setting() const { return setting_; }

 private:
  Setting setting_;
  std::unique_ptr<OrderTable> orders_;
};

}  // namespace frazil
