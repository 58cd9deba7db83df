#pragma once
// Prints what a search over orders of work found, for people (lines) and for programs (one JSON
// object).

#include <string>
#include <vector>

#include "planner/search/searched_orders.h"

namespace frazil {

// Returns a line for each order, with the lower bound that holds for every order.
std::string print_orders(const std::vector<ShapeOrder>& orders);
// Returns {"searched_orders": [{"summary", "makespan_ns", ..}, ..]}.
std::string orders_json(const std::vector<ShapeOrder>& orders);

}  // namespace frazil
