#pragma once
// Searches the order of work on linear stages of unequal times: F, I (dgrad) and W (wgrad) on each
// device within the memory of each stage, for the least makespan or the least span (that of the
// device with the longest, from its first start to its last end).
//
// The search begins with the best of known orders (planner/order_search/order_seeds.h), then
// changes one word at a time (planner/order_search/order_moves.h), and keeps what is not worse than
// before by more than a threshold, which falls to nothing in each round (threshold accepting; Dueck
// and Scheuer 1990). It ends at a proven optimum, which is when a lower bound is reached, or when
// the budget is spent. Equal questions have equal answers: neither clock nor threads nor floating
// point play a part.

#include <cstdint>
#include <string_view>

#include "planner/order_search/order_timing.h"
#include "planner/orders/device_order.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/linear_bounds.h"

namespace frazil {

std::string_view objective_name(Objective objective);  // "makespan", "span"

inline constexpr int kMostMoves = 1'000'000'000;  // that may be asked for

struct OrderSearchOptions {
  Objective objective = Objective::kMakespan;
  std::int64_t budget = 1'500'000;  // moves tried: about a CPU second of 8 stages
  std::uint64_t seed = 0;
};

struct SearchedOrder {
  DeviceOrders orders;
  Duration makespan{0};
  Duration span{0};
  PlanBounds bounds;       // planner/prediction/linear_bounds.h
  Duration first_time{0};  // objective of the best order it began with
  std::int64_t moves_tried = 0;

  Duration time(Objective objective) const {
    return objective == Objective::kMakespan ? makespan : span;
  }
  const LowerBound& bound(Objective objective) const {
    return objective == Objective::kMakespan ? bounds.makespan : bounds.span;
  }
};

// Returns the best order found, which is never worse than the best seed. Throws InfeasibleError if
// backwards are fused, or times add up to too much.
SearchedOrder search_order(const LinearPipeline& pipeline, const OrderSearchOptions& options = {});

}  // namespace frazil
