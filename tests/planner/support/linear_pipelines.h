#pragma once
// Linear pipelines to search the orders of: drawn at random, and published ones.

#include <string>
#include <vector>

#include "planner/orders/device_order.h"
#include "planner/prediction/linear_bounds.h"
#include "tests/planner/support/order_cases.h"

namespace frazil {

// 1 to `most_stages`, 1 to `most_micro_batches`; times, hops and K of each stage its own, some of
// them nothing; either release.
LinearPipeline draw_linear_pipeline(Random& random, int most_stages, int most_micro_batches);
// The same with one hop for all boundaries and one K for all stages.
LinearPipeline draw_equal_hops(Random& random, int most_stages, int most_micro_batches);

// Eight stages of 16 micro-batches with times of 70 to 130 % of F, I and W, 8 in flight in halves.
LinearPipeline draw_unequal_stages(std::uint64_t seed, StageTimes mean, Duration hop);

// Published instances of eight unequal stages, in halves, and the best span and makespan that 18 s
// of local search found, each for itself.
struct PublishedStages {
  std::string name;
  LinearPipeline pipeline;
  Duration span{0};
  Duration makespan{0};
};
std::vector<PublishedStages> published_stages();

OrderProblem problem_of(const LinearPipeline& pipeline);  // of equal hops

}  // namespace frazil
