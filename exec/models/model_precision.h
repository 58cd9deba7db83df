#pragma once
// Gives a model the precision that its layers compute in. In bf16 the layers run under libtorch's
// autocast, by its own lists of operations: each operation casts what it reads, so that parameters
// stay in fp32 and so do their gradients, which the casts' own backward makes. A backward runs the
// operations that its forward ran, outside autocast.

#include <ATen/core/Tensor.h>

#include "exec/models/model.h"

namespace frazil {

// Returns the model with forwards and losses that compute in this precision, whoever calls them and
// on whatever thread: training, recomputing, evaluation, measuring. Requires: the model computes in
// fp32 so far.
ModelSpec with_precision(ModelSpec model, Precision precision);

// While it lives, operations of the calling thread on tensors of this kind of device run under
// autocast to bfloat16 if the precision asks for that. Autocast's cache of cast weights is off: it
// belongs to the whole process and knows a weight by its address, so that a weight cast before an
// update would be read after it. Each forward casts its own weights, and its graph keeps them as
// part of the stash. What was set before comes back at the end.
class PrecisionScope {
 public:
  PrecisionScope(Precision precision, c10::DeviceType device);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  at::ScalarType type_before_;
  bool was_caching_;
};

}  // namespace frazil
