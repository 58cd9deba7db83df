#pragma once
// The order of work searched (planner/order_search/order_search.h) for the best shapes of a plan
// search: those that are best with zb-h1, zb-h2, zb-1p and zb-2p, which say what their stages may
// hold. Stages have each their own times; groups of devices are searched one by one. Equal input
// gives equal bytes.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/order_search/order_search.h"
#include "planner/search/search.h"

namespace frazil {

// Of one plan.
struct ShapeOrder {
  Candidate named;     // with the schedule in whose memory the order was searched
  Candidate searched;  // the same but for its lists; infeasible like any other
  std::int64_t moves_tried = 0;
  std::string refusal;  // why its order cannot be searched; then there is no `searched`
  // It fits and takes less time than `named`, or no plan of that schedule was asked for.
  bool taken = false;
};

// Of the `options.keep` best plans that fit those with several stages, best first; of those that
// differ by the number in flight alone the one with the most. The bound of a searched plan is the
// higher of its own and, where the batch divides, that of its pipelines within their memory.
std::vector<ShapeOrder> search_orders(const ModelProfile& profile, const Cluster& cluster,
                                      const SearchOptions& options,
                                      const OrderSearchOptions& search);

// Those taken, among the candidates of the ranking.
void add_orders(Ranking& ranking, const std::vector<ShapeOrder>& orders);

// A line each, and what no order can be below.
std::string print_orders(const std::vector<ShapeOrder>& orders);
// {"searched_orders": [{"summary", "makespan_ns", ..}, ..]}
std::string orders_json(const std::vector<ShapeOrder>& orders);

}  // namespace frazil
