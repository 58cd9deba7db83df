#include "planner/answers/print_replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/prediction/answer_parts.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

Duration all_steps(const ReplanCase& asked) {
  return asked.answer.next.makespan * asked.held.steps + asked.answer.cost.total;
}

// Tells how far the answer can be above the least, if transitions to the plans not looked at cost
// nothing.
std::string print_left(const ReplanCase& asked) {
  const std::optional<NotLookedAt>& left = asked.answer.left;
  if (!left) return "";
  const Duration least = std::min(all_steps(asked), left->at_least * asked.held.steps);
  return fmt::format(
      "{} not looked at; none takes less than {} a step, so that the answer is at most {} above "
      "the least\n",
      count_of(left->candidates, "plan"), to_text(left->at_least),
      percent(gap(all_steps(asked), least)));
}

}  // namespace

std::optional<std::int64_t> find_break_even(const ReplanCase& asked) {
  if (asked.answer.stays || asked.going_on.infeasible) return std::nullopt;
  const Duration saved = asked.going_on.makespan - asked.answer.next.makespan;
  if (saved <= Duration{0}) return std::nullopt;
  return (asked.answer.cost.total + saved - Duration{1}) / saved;
}

std::string print_replan(const ReplanCase& asked) {
  const Candidate& held = asked.going_on;
  const Replan& answer = asked.answer;
  const std::string left = print_left(asked);
  std::string text =
      fmt::format("held    {}: {}\n", summarize(held.plan),
                  held.infeasible ? held.infeasible->reason : to_text(held.makespan) + " a step");
  if (answer.stays) {
    return text +
           fmt::format(
               "go on with it: no other plan {} takes less over {}, with the transition to it\n",
               answer.left ? "looked at" : "of the search", count_of(asked.held.steps, "step")) +
           left;
  }
  text += fmt::format("next    {}: {} a step\n", summarize(answer.next.plan),
                      to_text(answer.next.makespan));
  text += fmt::format("        {} to move, {} in all", to_text(answer.cost.moved),
                      to_text(answer.cost.total));
  if (const auto steps = find_break_even(asked)) {
    text += fmt::format("; paid back after {} of {}", count_of(*steps, "step"), asked.held.steps);
  } else {
    text += "; the held plan does not run under this mask";
  }
  text +=
      fmt::format("\nover {} {}", count_of(asked.held.steps, "step"), to_text(all_steps(asked)));
  if (!held.infeasible) {
    text += fmt::format(" instead of {}", to_text(held.makespan * asked.held.steps));
  }
  return text + "\n" + left;
}

std::string replan_json(const ReplanCase& asked) {
  const Replan& answer = asked.answer;
  Json json = {{"stays", answer.stays},
               {"steps", asked.held.steps},
               {"plan", summarize(answer.next.plan)},
               {"step_ns", answer.next.makespan.count()},
               {"switch_ns", answer.cost.total.count()},
               {"moved_bytes", answer.cost.moved.count},
               {"total_ns", all_steps(asked).count()}};
  if (asked.going_on.infeasible) {
    json["held_does_not_run"] = asked.going_on.infeasible->reason;
  } else {
    json["held_step_ns"] = asked.going_on.makespan.count();
  }
  if (answer.left) {
    json["not_looked_at"] = answer.left->candidates;
    json["not_looked_at_take_at_least_ns"] = answer.left->at_least.count();
  }
  if (const auto steps = find_break_even(asked)) json["break_even_steps"] = *steps;
  return json.dump() + "\n";
}

}  // namespace frazil
