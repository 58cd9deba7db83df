#include "planner/search/search.h"

#include "planner/search/best_first.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void check(const SearchOptions& options) {
  ENSURE(options.batch_size >= 1, "a batch of at least one sample");
  for (const int size : options.micro_batch_sizes) {
    ENSURE(size >= 1 && size <= options.batch_size, "micro-batches of 1 sample to the batch");
  }
  ENSURE(options.keep >= 0, "a number of plans to keep");
  ENSURE(!options.held ||
             (options.keep > 0 && options.held->steps >= 1 && options.held->transition_time),
         "steps to come and the price of a transition");
}

}  // namespace

Ranking search_plans(Setting setting, const SearchOptions& options) {
  return PlanSearch(setting).search(options);
}

PlanSearch::PlanSearch(Setting setting)
    : setting_(setting), orders_(std::make_unique<OrderTable>()) {}

PlanSearch::~PlanSearch() = default;

Ranking PlanSearch::search(const SearchOptions& options) {
  check(options);
  Evaluator evaluator(setting_, options, *orders_);
  return options.keep == 0 ? search_exhaustively(evaluator) : search_best_first(evaluator, options);
}

}  // namespace frazil
