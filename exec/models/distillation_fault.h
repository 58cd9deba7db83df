#pragma once
// Says what keeps two networks from being distilled block by block (exec/models/distillation.h).

#include <cstddef>
#include <optional>
#include <string>

#include "exec/models/distillation.h"
#include "exec/tensors/samples.h"

namespace frazil {

// A fault of one block, for which two networks cannot be distilled.
struct DistillationFault {
  std::size_t block = 0;
  std::string found;
  std::string expected;
};

// Returns the first fault: a boundary that several tensors cross, or one tensor of an earlier
// block; a layer behind the first block that reads samples; tensors at a boundary whose shapes or
// types differ, or that are no floating-point numbers; a network whose last layer carries no loss,
// or an earlier one; a student block without trainable parameters, or that shares some with
// another. Runs both networks on `samples`.
std::optional<DistillationFault> find_fault(const Distillation& distillation,
                                            const Samples& samples);

}  // namespace frazil
