#pragma once
// Generators that decide by cost add up times. This check keeps their sums far below kFarAway
// (profiles/units.h), which they take for a time that is not known.

#include "planner/orders/device_order.h"

namespace frazil {

// Throws InfeasibleError if all work and messages of the problem, run one after another, take 2^57
// ns or more.
void refuse_endless_times(const OrderProblem& problem);

}  // namespace frazil
