#include "planner/search/rankings/searched_orders.h"

#include <algorithm>
#include <utility>

#include "planner/order_search/searched_plan.h"
#include "profiles/error.h"

namespace frazil {
namespace {

const NamedSchedule& schedule_of(const Candidate& candidate) {
  return std::get<NamedSchedule>(candidate.plan.schedule);
}

// Returns the micro-batches in flight, which are the schedule's own if none are given.
int depth_of(const Candidate& candidate) {
  const auto stages = static_cast<int>(candidate.plan.pipelines.front().stages.size());
  const NamedSchedule& schedule = schedule_of(candidate);
  return schedule.in_flight.value_or(facts_of(schedule.kind).own_in_flight.on(stages));
}

bool releases_half(ScheduleKind kind) {
  return facts_of(kind).bounds == BoundClass::kLevelInHalves;
}

bool differ_in_depth_alone(const Candidate& a, const Candidate& b) {
  return a.plan.micro_batch_size == b.plan.micro_batch_size &&
         a.plan.pipelines == b.plan.pipelines &&
         releases_half(schedule_of(a).kind) == releases_half(schedule_of(b).kind);
}

bool has_single_stages(const Plan& plan) {
  return std::all_of(plan.pipelines.begin(), plan.pipelines.end(),
                     [](const Pipeline& pipeline) { return pipeline.stages.size() == 1; });
}

std::vector<Candidate> find_shapes(Setting setting, SearchOptions options) {
  options.schedules.clear();
  for (const ScheduleFacts& facts : all_schedules()) {
    if (holds_level(facts)) options.schedules.push_back(facts.kind);
  }
  options.recompute = false;
  Ranking ranking = search_plans(setting, options);
  std::vector<Candidate> shapes;
  for (Candidate& candidate : ranking.candidates) {
    if (candidate.infeasible) break;
    if (has_single_stages(candidate.plan)) continue;
    const auto known = std::find_if(shapes.begin(), shapes.end(), [&](const Candidate& other) {
      return differ_in_depth_alone(candidate, other);
    });
    if (known == shapes.end()) {
      shapes.push_back(std::move(candidate));
    } else if (depth_of(candidate) > depth_of(*known)) {
      *known = std::move(candidate);
    }
  }
  return shapes;
}

void raise(LowerBound& known, const LowerBound& bound) {
  if (bound.time > known.time) known = bound;
}

}  // namespace

std::vector<ShapeOrder> search_orders(Setting setting, const SearchOptions& options,
                                      const OrderSearchOptions& search) {
  const StepOptions step{.clip = options.clip, .overlap = options.overlap};
  std::vector<ShapeOrder> orders;
  for (Candidate& shape : find_shapes(setting, options)) {
    ShapeOrder& order = orders.emplace_back();
    order.named = std::move(shape);
    try {
      SearchedPlan found = search_order(order.named.plan, setting, search);
      order.searched = judge_plan(std::move(found.plan), setting, step);
      const bool divides = options.batch_size % order.named.plan.micro_batch_size == 0;
      for (const SearchedOrder& own : found.found) {
        order.moves_tried = std::max(order.moves_tried, own.moves_tried);
        if (!divides) continue;
        raise(order.searched.bounds.makespan, own.bounds.makespan);
        raise(order.searched.bounds.span, own.bounds.span);
      }
      const bool is_listed = std::find(options.schedules.begin(), options.schedules.end(),
                                       schedule_of(order.named).kind) != options.schedules.end();
      // The search of orders leaves some costs out of its model, so an order can be worse than its
      // seed.
      const Duration most = order.named.makespan - Duration{is_listed ? 1 : 0};
      order.taken = !order.searched.infeasible && order.searched.makespan <= most;
    } catch (const InfeasibleError& error) {
      order.refusal = error.what();
    }
  }
  return orders;
}

void add_orders(Ranking& ranking, const std::vector<ShapeOrder>& orders) {
  for (const ShapeOrder& order : orders) {
    if (order.taken) ranking.candidates.push_back(order.searched);
  }
  rank(ranking.candidates);
}

}  // namespace frazil
