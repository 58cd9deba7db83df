#pragma once
// Makes linear pipelines whose orders are searched: random ones and published ones.

#include <string>
#include <vector>

#include "planner/orders/device_order.h"
#include "planner/prediction/linear_bounds.h"
#include "tests/planner/support/order_cases.h"

namespace frazil {

// Draws 1 to `most_stages` stages and 1 to `most_micro_batches` micro-batches. Each stage has its
// own times, hops and K, some of the times zero; the release is drawn too.
LinearPipeline draw_linear_pipeline(Random& random, int most_stages, int most_micro_batches);
// Draws the same with one hop for all boundaries and one K for all stages.
LinearPipeline draw_equal_hops(Random& random, int most_stages, int most_micro_batches);

// Draws eight stages of 16 micro-batches with times of 70 to 130 % of F, I and W, and 8 in flight
// in halves.
LinearPipeline draw_unequal_stages(std::uint64_t seed, StageTimes mean, Duration hop);

// A published instance of eight unequal stages, counted in halves, with the best span and the best
// makespan that 18 s of local search found, each in a search of its own.
struct PublishedStages {
  std::string name;
  LinearPipeline pipeline;
  Duration span{0};
  Duration makespan{0};
};
std::vector<PublishedStages> published_stages();

OrderProblem problem_of(const LinearPipeline& pipeline);  // of equal hops

}  // namespace frazil
