#include "planner/answers/print_searched_orders.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "planner/prediction/answer_parts.h"
#include "planner/prediction/plan_notation.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

double gap_percent(const Candidate& candidate) {
  const LowerBound& bound = candidate.bounds.makespan;
  if (bound.time.count() == 0) return 0;
  return 100 * (static_cast<double>(candidate.makespan.count()) /
                    static_cast<double>(bound.time.count()) -
                1);
}

// Tells the moves tried; there are none if a known order reaches the bound of F, I, W and messages.
std::string describe_moves(const ShapeOrder& order) {
  if (order.moves_tried > 0 || !order.refusal.empty()) return count_of(order.moves_tried, "move");
  return "none of F, I, W and messages is better than one of the known";
}

std::string describe_outcome(const ShapeOrder& order) {
  if (!order.refusal.empty()) return order.refusal;
  const Candidate& searched = order.searched;
  if (searched.infeasible) return searched.infeasible->reason;
  return fmt::format("{}, {:.2f} % above what every order takes, {} ({}); {}",
                     to_text(searched.makespan), gap_percent(searched),
                     to_text(searched.bounds.makespan.time), searched.bounds.makespan.name,
                     order.taken ? "taken" : "no better than the named one");
}

}  // namespace

std::string print_orders(const std::vector<ShapeOrder>& orders) {
  if (orders.empty()) {
    return "\nno order was searched: none of the best plans splits its backwards over several "
           "stages\n";
  }
  std::string text = "\norders searched, each in the memory of a named schedule\n";
  Suffixes suffixes;
  for (const ShapeOrder& order : orders) {
    const Plan& plan = order.named.plan;
    suffixes.add(suffixes_of(plan));
    text +=
        fmt::format("{}, {} of {}, {} at {}: {}: {}\n", shape_notation(plan), plan.micro_batches(),
                    plan.micro_batch_size, variant_notation(plan), to_text(order.named.makespan),
                    describe_moves(order), describe_outcome(order));
  }
  return text + explain_suffixes(suffixes);
}

std::string orders_json(const std::vector<ShapeOrder>& orders) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ShapeOrder& order : orders) {
    nlohmann::ordered_json json = {{"within", summarize(order.named.plan)},
                                   {"named_makespan_ns", order.named.makespan.count()},
                                   {"moves_tried", order.moves_tried},
                                   {"taken", order.taken}};
    if (!order.refusal.empty()) {
      json["reason"] = order.refusal;
    } else if (order.searched.infeasible) {
      json["reason"] = order.searched.infeasible->reason;
    } else {
      json["makespan_ns"] = order.searched.makespan.count();
      json["lower_bound_makespan_ns"] = order.searched.bounds.makespan.time.count();
      json["lower_bound_makespan_name"] = order.searched.bounds.makespan.name;
    }
    list.push_back(json);
  }
  return nlohmann::ordered_json{{"searched_orders", list}}.dump();
}

}  // namespace frazil
