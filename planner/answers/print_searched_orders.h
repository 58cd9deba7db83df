#pragma once
// What a search over orders of work came to, for people (lines) and for programs (one JSON object).

#include <string>
#include <vector>

#include "planner/search/searched_orders.h"

namespace frazil {

// Returns a line for each order, with what no order can be below.
std::string print_orders(const std::vector<ShapeOrder>& orders);
// Returns {"searched_orders": [{"summary", "makespan_ns", ..}, ..]}.
std::string orders_json(const std::vector<ShapeOrder>& orders);

}  // namespace frazil
