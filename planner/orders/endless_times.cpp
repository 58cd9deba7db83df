#include "planner/orders/endless_times.h"

#include "profiles/error.h"

namespace frazil {

void refuse_endless_times(const OrderProblem& problem) {
  __extension__ using Wide = __int128;
  Wide once = 0;
  for (const StageTimes& times : problem.times) {
    once += Wide{times.total().count()} + 2 * Wide{problem.hop.count()};
  }
  if (once * problem.micro_batches >= kFarAway.count() / 8) {
    throw InfeasibleError("the times of this pipeline add up past 2^57 ns, too long to order");
  }
}

}  // namespace frazil
