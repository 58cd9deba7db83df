#pragma once
// A loss as a device has seen it, which is known in every process that needs it.

#include <compare>

#include "exec/control/wire.h"
#include "profiles/units.h"

namespace frazil {

struct LossSample {
  MicroBatchId micro_batch;
  LayerId layer;
  double value = 0;  // scaled: the losses of a step add up to its mean
  friend auto operator<=>(const LossSample&, const LossSample&) = default;
};

template <class A>
void archive(A& a, LossSample& s) {
  a(s.micro_batch, s.layer, s.value);
}

}  // namespace frazil
