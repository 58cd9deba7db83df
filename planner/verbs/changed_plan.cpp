#include "planner/verbs/changed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/order_search/order_search.h"
#include "planner/order_search/searched_plan.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/ranking.h"
#include "planner/verbs/what_if_flags.h"
#include "planner/what_if/plan_changes.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

ScheduleKind searched_within(const NamedSchedule* named) {
  if (named == nullptr) return kSearchedWithin;
  return holds_level(facts_of(named->kind)) ? named->kind : kSearchedWithin;
}

std::string describe(const Candidate& own, const Candidate& found, const SearchedPlan& searched,
                     ScheduleKind within, bool is_taken) {
  std::int64_t moves = 0;
  for (const SearchedOrder& order : searched.found) moves = std::max(moves, order.moves_tried);
  std::string outcome = "its own order is kept, for that found ";
  if (is_taken && found.makespan == own.makespan) {
    outcome = "as fast as its own order";
  } else if (is_taken && own.infeasible) {
    outcome = "its own order does not run";
  } else if (is_taken) {
    outcome = fmt::format("{} faster than its own order", to_text(own.makespan - found.makespan));
  } else if (found.infeasible) {
    outcome += "does not fit: " + found.infeasible->reason;
  } else {
    outcome += fmt::format("takes {}", to_text(found.makespan));
  }
  return fmt::format("searched     in the memory of {}: {}; {}\n", schedule_name(within),
                     count_of(moves, "move"), outcome);
}

ChangedPlan search_plan(Plan plan, Setting setting, const StepOptions& step,
                        const OrderSearchOptions& options) {
  const ScheduleKind within = std::get<NamedSchedule>(plan.schedule).kind;
  SearchedPlan searched = search_order(plan, setting, options);
  const Candidate own = judge_plan(std::move(plan), setting, step);
  const Candidate found = judge_plan(searched.plan, setting, step);
  const bool is_better = !found.infeasible && (own.infeasible || found.makespan <= own.makespan);
  // If neither order fits, the answer shows the order that was asked for.
  const bool is_taken =
      is_better || options.objective == Objective::kSpan || (own.infeasible && found.infeasible);
  return {is_taken ? found.plan : own.plan, describe(own, found, searched, within, is_taken)};
}

// Divides the batch into as many micro-batches as --micro-batches says.
Plan divide_batch(const Flags& values, Plan plan) {
  const auto number = optional_integer(values, "micro-batches", 1, plan.batch_size);
  if (!number) return plan;
  const bool keeps_lists = std::holds_alternative<ExplicitSchedule>(plan.schedule) &&
                           values.count("schedule") == 0 && !is_set(values, "compare");
  if (keeps_lists && *number != plan.micro_batches()) {
    refuse_flags(fmt::format("--micro-batches {} for a plan whose own lists have {}", *number,
                             count_of(plan.micro_batches(), "micro-batch")),
                 "--schedule too");
  }
  return with_micro_batches(std::move(plan), *number);
}

NamedSchedule read_named_schedule(const Flags& values, const Plan& plan, bool is_searched) {
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  NamedSchedule schedule;
  if (is_searched) {
    schedule.kind = searched_within(named);
    if (named != nullptr && named->kind == schedule.kind) schedule.in_flight = named->in_flight;
  } else if (values.count("schedule") > 0) {
    schedule.kind = read_schedule(values);
  } else if (named != nullptr) {
    schedule.kind = named->kind;
  } else {
    refuse_flags("--in-flight for a plan whose lists are given outright", "--schedule too");
  }
  if (values.count("in-flight") > 0) {
    schedule.in_flight = optional_integer(values, "in-flight", 1, kMostCounted);
  }
  return schedule;
}

}  // namespace

ChangedPlan change_plan(const Flags& values, Plan plan, Setting setting, const StepOptions& step) {
  plan = divide_batch(values, std::move(plan));
  const std::optional<OrderSearchOptions> search = read_search(values);
  if (values.count("schedule") + values.count("in-flight") == 0) return {plan, ""};
  const auto policy =
      values.count("schedule") > 0 ? find_policy(required_text(values, "schedule")) : std::nullopt;
  if (policy) {
    if (values.count("in-flight") > 0) {
      refuse_flags(fmt::format("--in-flight with --schedule {}", policy_name(*policy)),
                   "a schedule with fixed lists, for a dispatch policy goes by memory");
    }
    return {with_schedule(std::move(plan), *policy), ""};
  }
  const NamedSchedule schedule = read_named_schedule(values, plan, search.has_value());
  plan = with_schedule(std::move(plan), schedule);
  if (search) return search_plan(std::move(plan), setting, step, *search);
  return {std::move(plan), ""};
}

}  // namespace frazil
