#pragma once
// The gradient sum of one group of tensors in mode fast: added in the order in which micro-batches
// come. One set is held; the bits depend on that order, so they are equal only for equal plans.

#include "exec/tensors/tensors.h"

namespace frazil {

class RunningSum {
 public:
  // Takes one micro-batch's gradients; they may be added to in place when nobody else holds them.
  void add(Tensors gradients);
  // What has come; empty when nothing has. Leaves the sum empty.
  Tensors take();

 private:
  Tensors sum_;
};

}  // namespace frazil
