#pragma once
// What does not train takes neither gradients nor moments nor messages. These checks hold for any
// model.

#include <cstddef>
#include <cstdint>

#include "exec/run/run.h"
#include "tests/exec/models/test_models.h"

namespace frazil {

std::size_t count_trainable(const LayerSpec& layer);

// Expects of the layers of all devices that, after some steps from the start values of this seed
// under this mask, the trainable parameters have moments and require gradients and the others
// neither, and that they alone have moved.
void expect_state_of_trainable_alone(const Run& run, std::uint64_t seed, const FreezeMask& mask);

// Expects of 2 and of 4 replicas that they send what is trainable alone, and nothing of a layer
// without trainable parameters.
void expect_reductions_of_trainable_alone(const TestModel& model);

}  // namespace frazil
