#pragma once
// Searches the order of work (planner/order_search/order_search.h) for the best shapes of a plan
// search: those that are best with zb-h1, zb-h2, zb-1p and zb-2p, which say what their stages may
// hold. Each stage has times of its own; groups of devices are searched one by one. Equal input
// gives equal bytes.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/order_search/order_search.h"
#include "planner/search/search.h"
#include "profiles/setting.h"

namespace frazil {

// The order that was searched for one plan.
struct ShapeOrder {
  Candidate named;               // with the schedule in whose memory the order was searched
  Candidate searched;            // the same plan but for its lists; may be infeasible
  std::int64_t moves_tried = 0;  // in the pipeline with the most
  std::string refusal;           // why its order cannot be searched; then there is no `searched`
  // True if `searched` fits and takes less time than `named`, or no more time if no plan of that
  // schedule was asked for.
  bool taken = false;
};

// Searches for the `options.keep` best plans (0: all) with the four schedules above, without
// recomputing, and then the orders of those that fit and have several stages, best first. Of plans
// that differ in the number in flight alone it takes the one with the most. `options.schedules` are
// those that were asked for, which decide `taken` alone. Requires: `options.held` is empty.
// The bound of a searched plan is the higher of its own and, if the micro-batch size divides the
// batch, that of its pipelines within their memory.
std::vector<ShapeOrder> search_orders(Setting setting, const SearchOptions& options,
                                      const OrderSearchOptions& search);

// Adds the plans whose orders are taken to the candidates of the ranking, and ranks them anew.
void add_orders(Ranking& ranking, const std::vector<ShapeOrder>& orders);

}  // namespace frazil
