#pragma once
// Tells what a search over orders of work found, as text for people and as one JSON object for
// programs.

#include <string>
#include <vector>

#include "planner/search/rankings/searched_orders.h"

namespace frazil {

// Returns a heading, a line for each plan whose order was searched, and what the suffixes in them
// mean. A line tells how far the order is above the lower bound of all orders of that plan, or why
// there is no order. Without orders it returns one line that says so.
std::string print_orders(const std::vector<ShapeOrder>& orders);
// Returns, on one line,
//   {"searched_orders": [{"within": "2 stages ..", "named_makespan_ns": 0, "moves_tried": 0,
//     "taken": true, "makespan_ns": 0, "lower_bound_makespan_ns": 0,
//     "lower_bound_makespan_name": ".."}, ..]}
// "within" is the summary of the plan in whose memory the order was searched. If no order was found
// or it does not fit, "reason" (a sentence) stands in place of the last three.
std::string orders_json(const std::vector<ShapeOrder>& orders);

}  // namespace frazil
