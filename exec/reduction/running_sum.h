#pragma once
// RunningSum is the gradient sum of one list of tensors in mode fast. Gradients are added in the
// order in which micro-batches come, so only one set is held. The bits depend on that order and are
// equal only for equal plans.

#include "exec/tensors/tensors.h"

namespace frazil {

class RunningSum {
 public:
  // Adds one micro-batch's gradients, which may be written to in place when nobody else holds them.
  void add(Tensors gradients);
  // Returns the sum of what has come, empty when nothing has, and leaves the sum empty.
  Tensors take();

 private:
  Tensors sum_;
};

}  // namespace frazil
