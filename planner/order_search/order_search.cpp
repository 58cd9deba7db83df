#include "planner/order_search/order_search.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/order_search/order_moves.h"
#include "planner/order_search/order_seeds.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Time = OrderTiming::Time;

constexpr std::int64_t kMovesOfARound = 300'000;
constexpr Time kHighestPerMillion = 10'000;  // highest threshold, as a part of the bound
constexpr Time kShares = 1024;

PlanBounds find_bounds(const LinearPipeline& pipeline) {
  PlanBounds bounds;
  for (const LinearBound& bound : find_linear_bounds(pipeline)) {
    const auto raise = [&](LowerBound& known, Duration time) {
      if (known.name.empty() || time > known.time) known = {time, std::string(bound.name)};
    };
    raise(bounds.makespan, bound.makespan);
    raise(bounds.span, bound.span);
  }
  return bounds;
}

class Search {
 public:
  Search(const LinearPipeline& pipeline, const OrderSearchOptions& options)
      : timing_(pipeline, options.objective),
        bounds_(find_bounds(pipeline)),
        options_(options),
        moves_(options.seed) {}

  SearchedOrder run(const LinearPipeline& pipeline) {
    begin(pipeline);
    SearchedOrder found;
    found.first_time = best_time_;
    while (moves_tried_ < options_.budget && best_time_ > bound()) run_round();
    timing_.assign(best_);
    found.orders = to_orders(best_);
    found.makespan = timing_.makespan();
    found.span = timing_.span();
    found.bounds = bounds_;
    found.moves_tried = moves_tried_;
    return found;
  }

 private:
  Duration bound() const {
    return options_.objective == Objective::kMakespan ? bounds_.makespan.time : bounds_.span.time;
  }

  void begin(const LinearPipeline& pipeline) {
    for (const Words& seed : make_seed_orders(pipeline)) {
      if (timing_.assign(seed)) keep_if_best();
    }
    ENSURE(!best_.empty(), "list scheduling makes a legal order");
  }

  // Keeps the order if its objective is the best so far; the mean, which the score adds to the
  // objective, decides only between equals.
  void keep_if_best() {
    const std::pair rank(timing_.longest(), timing_.score());
    if (!best_.empty() && rank >= std::pair(best_time_, best_score_)) return;
    best_ = timing_.words();
    std::tie(best_time_, best_score_) = rank;
  }

  // Runs one round from the best order on. The threshold falls as the third power of the moves that
  // are left, and a move is allowed a random part of the threshold.
  void run_round() {
    const std::int64_t moves = std::min(kMovesOfARound, options_.budget - moves_tried_);
    const Time highest = timing_.score_of(bound()) / 1'000'000 * kHighestPerMillion;
    timing_.assign(best_);
    timing_.find_critical_path(critical_);
    for (std::int64_t left = moves; left > 0 && best_time_ > bound(); --left, ++moves_tried_) {
      const Time share = left * kShares / moves;
      const Time threshold = highest * share / kShares * share / kShares * share / kShares;
      if (!moves_.draw(timing_, critical_, move_)) continue;
      const Time allowed = threshold * static_cast<Time>(moves_.below(kShares)) / kShares;
      if (!timing_.replace(move_.stage, move_.first, move_.letters, timing_.score() + allowed)) {
        continue;
      }
      timing_.find_critical_path(critical_);
      keep_if_best();
    }
  }

  OrderTiming timing_;
  PlanBounds bounds_;
  OrderSearchOptions options_;
  MoveMaker moves_;
  OrderMove move_;
  std::vector<WordPlace> critical_;
  std::int64_t moves_tried_ = 0;
  Words best_;
  Time best_score_ = 0;
  Duration best_time_{0};
};

}  // namespace

std::string_view objective_name(Objective objective) {
  switch (objective) {
    case Objective::kMakespan:
      return "makespan";
    case Objective::kSpan:
      return "span";
  }
  return "";
}

SearchedOrder search_order(const LinearPipeline& pipeline, const OrderSearchOptions& options) {
  return Search(pipeline, options).run(pipeline);
}

}  // namespace frazil
