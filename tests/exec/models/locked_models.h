#pragma once
// The small models with parameters that do not train: as they are fine-tuned with adapters, with
// biases alone, or above a part that came from elsewhere.

#include <string>
#include <vector>

#include "tests/exec/models/test_models.h"

namespace frazil {

// Returns the model whose parameters with such names (patterns of exec/state/parameter_groups.h) do
// not train.
ModelSpec lock(ModelSpec model, const std::vector<std::string>& patterns);
TestModel lock(TestModel model, const std::vector<std::string>& patterns);

// Returns models with whole layers that do not train at the front, in the middle and at the end,
// operations of which one parameter trains and the other does not, and a tied table that does not.
std::vector<TestModel> locked_models();

}  // namespace frazil
